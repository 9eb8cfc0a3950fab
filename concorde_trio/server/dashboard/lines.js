// Who waits for whom: the lock table, kept beside the worker's from the same order of queued, ended and released runs.
// The law (LCK-2, LCK-4, LCK-7): a lock is a line of unreleased runs. A run is clear on a lock if nothing stands before it
// there but held runs of its own signal; otherwise it waits for the nearest before it.

/** `session` and `resource` names are different locks, so the space is part of the key. */
export function keyOf(space, name) {
  return `${space === "session" ? "s" : "r"}:${name}`;
}

/** The keys of a run's locks: its session first, then its resources as they were given. */
export function keysOf(run) {
  run.keys ??= [keyOf("session", run.session), ...run.resources.map((name) => keyOf("resource", name))];
  return run.keys;
}

/** A line's place for `run`, or where it would stand. Lines are sorted by `order`. */
function placeOf(runs, run) {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle].order < run.order) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Lines {
  constructor() {
    this.lines = new Map();
  }

  /** A run takes its place: by its `order`, which is the tail unless it became visible late. */
  join(run) {
    for (const key of keysOf(run)) {
      let found = this.lines.get(key);
      if (found === undefined) {
        found = { key, space: key[0] === "s" ? "session" : "resource", name: key.slice(2), runs: [] };
        this.lines.set(key, found);
      }
      const runs = found.runs;
      if (runs.length === 0 || runs.at(-1).order < run.order) runs.push(run);
      else if (runs[placeOf(runs, run)] !== run) runs.splice(placeOf(runs, run), 0, run);
    }
  }

  /** A run lets go of all its locks. */
  leave(run) {
    for (const key of keysOf(run)) {
      const found = this.lines.get(key);
      if (found === undefined) continue;
      const place = placeOf(found.runs, run);
      if (found.runs[place] === run) found.runs.splice(place, 1);
      if (found.runs.length === 0) this.lines.delete(key);
    }
  }

  /** What a waiting run misses: `[{space, name, blocker, position}]`, its session first; empty if nothing holds it back. */
  missing(run) {
    const found = [];
    for (const key of keysOf(run)) {
      const edge = this.#edge(key, run);
      if (edge !== null) found.push(edge);
    }
    return found;
  }

  #edge(key, run) {
    const found = this.lines.get(key);
    if (found === undefined) return null;
    const place = placeOf(found.runs, run);
    if (found.runs[place] !== run || place === 0) return null;
    const before = found.runs[place - 1];
    // Held runs stand at the head and are all of one signal, so the nearest says it for all.
    if (before.held && before.signal === run.signal && run.state === "pending") return null;
    if (run.state !== "pending") return null;
    return { space: found.space, name: found.name, blocker: before, position: place };
  }

  /** The first lock that a run misses, or null. */
  first(run) {
    if (run.state !== "pending") return null;
    for (const key of keysOf(run)) {
      const edge = this.#edge(key, run);
      if (edge !== null) return edge;
    }
    return null;
  }

  /** Whether a pending run is held back by another. */
  waits(run) {
    return this.first(run) !== null;
  }

  /**
   * The chain from a run to its root: `[{run, edges}]`, each next run the blocker of the first edge before it, the last
   * one without edges. It can't have a circle, since every blocker was queued before.
   */
  chain(run) {
    const found = [];
    for (let at = run; at !== undefined; ) {
      const edges = this.missing(at);
      found.push({ run: at, edges });
      at = edges[0]?.blocker;
    }
    return found;
  }

  /**
   * Every run at the end of somebody's chain: `Map(root → {count, oldest})`, how many wait for it and the longest of them.
   * Each line is walked once, so this costs time in the runs of the table.
   */
  roots(waiting) {
    const known = new Map();
    const totals = new Map();
    for (const run of waiting) {
      const passed = [];
      let at = run;
      while (!known.has(at)) {
        passed.push(at);
        const edge = this.first(at);
        if (edge === null) {
          known.set(at, at);
          break;
        }
        at = edge.blocker;
      }
      const root = known.get(at);
      for (const each of passed) known.set(each, root);
      if (root === run) continue;
      const total = totals.get(root) ?? { count: 0, oldest: run };
      total.count += 1;
      if (run.queuedAt < total.oldest.queuedAt) total.oldest = run;
      totals.set(root, total);
    }
    return totals;
  }
}
