// Lanes by session: when each run waited, ran, was held and had its post phase, how long its holds have left, and who is next
// in line. The law: a session does one thing at a time, so a lane has one bar at a time; those that wait stand behind it as
// chips, in the order in which they get their turn. Only lanes in sight are drawn.

import { chainSentence, phaseWords, waitingWords } from "./chain.js";
import { fill, h, mark, say } from "./dom.js";
import { Grid } from "./grid.js";
import { brief, clock, line, sessionName, span } from "./text.js";

const HEIGHT = 46;
const AHEAD = 0.2; // of the window, to the right of now
const CHIPS = 3;
const CALM = 15; // seconds for which a lane keeps its place after its last run
const URGENT = new Set(["approval", "backoff", "stopping"]);
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

export class Lanes {
  /** `shown`: `run(run)` and `session(name)` open what was pressed; `pointed(run, rectangle)` and `left()` are for the card. */
  constructor(panel, model, wire, shown) {
    this.model = model;
    this.wire = wire;
    this.shown = shown;
    this.window = 120;
    this.find = "";
    this.lit = null; // run → class, of the chain that is looked at
    this.number = 0;
    this.order = [];
    this.firstSeen = new Map();
    this.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
    this.width = 0; // of a track; it is measured when it changes, for measuring lays out the page
    new ResizeObserver(([entry]) => {
      this.width = entry.contentRect.width;
      this.paintSoon();
    }).observe(this.ticks);
    const root = h("div", { class: "grid", role: "grid", "aria-label": "Lanes by session. Up and down: sessions; left and right: runs; Enter: details." });
    this.empty = h("div", { class: "empty", hidden: true });
    fill(panel, this.#controls(), h("div", { class: "axis" }, h("div", {}, "Session"), this.ticks, h("div", {}, "Next in line")), root, this.empty);
    this.grid = new Grid(root, {
      height: HEIGHT,
      make: () => this.#make(),
      paint: (element, lane) => this.#paint(element, lane),
      key: (lane) => lane.name,
      cells: (lane) => this.#cells(lane),
      open: (lane, cell) => (cell === null ? this.shown.session(lane.name) : this.shown.run(this.model.runs.get(cell))),
      onActive: (lane, cell) => this.#active(cell),
    });
    this.#listen(root);
  }

  #controls() {
    const find = h("input", { type: "search", "aria-label": "Find a session", placeholder: "Find a session" });
    find.addEventListener("input", () => {
      this.find = find.value.toLowerCase();
      this.refresh();
    });
    const windows = [[30, "30 seconds"], [60, "1 minute"], [120, "2 minutes"], [600, "10 minutes"], [3600, "1 hour"], [21600, "6 hours"]];
    const choose = h("select", {}, windows.map(([seconds, words]) => h("option", { value: seconds, selected: seconds === this.window }, words)));
    choose.addEventListener("change", () => {
      this.window = Number(choose.value);
      this.refresh();
    });
    const legend = [["waiting", "waits"], ["running", "runs"], ["held", "held"], ["post", "post phase"], ["done", "done"], ["failed", "failed"]];
    return h(
      "div",
      { class: "bar-top" },
      find,
      h("label", {}, "The last", choose),
      h("div", { class: "legend", "aria-hidden": "true" }, legend.map(([phase, words]) => h("span", {}, swatch(phase), words))),
    );
  }

  #listen(root) {
    const runAt = (event) => this.model.runs.get(event.target.closest?.("[data-run]")?.dataset.run);
    root.addEventListener("pointerover", (event) => {
      this.inside = true;
      const run = runAt(event);
      if (run !== undefined && event.pointerType !== "touch") this.shown.pointed(run, event.target.closest("[data-run]").getBoundingClientRect());
    });
    root.addEventListener("pointerout", (event) => {
      if (runAt(event) !== undefined) this.shown.left();
    });
    root.addEventListener("pointerleave", () => (this.inside = false));
    root.addEventListener("click", (event) => {
      const run = runAt(event);
      const lane = event.target.closest("[data-lane]")?.dataset.lane;
      if (run !== undefined) {
        this.grid.select(run.session, run.id, false);
        this.shown.run(run);
      } else if (lane !== undefined) {
        this.grid.select(lane, null, false);
        this.shown.session(lane);
      }
    });
    root.addEventListener("blur", () => this.shown.left());
    root.addEventListener("scroll", () => this.shown.left(), { passive: true });
  }

  #active(cell) {
    if (cell === null) {
      this.shown.left();
      return;
    }
    const element = this.grid.root.querySelector(`[data-cell="${CSS.escape(cell)}"]`);
    const run = this.model.runs.get(cell);
    if (element !== null && run !== undefined) this.shown.pointed(run, element.getBoundingClientRect());
  }

  /** Which lanes there are, in an order that does not change under a hand. */
  refresh() {
    const now = this.wire.now();
    const busy = [];
    const idle = [];
    const known = new Set(this.order.map((lane) => lane.name));
    const still = this.inside || document.activeElement === this.grid.root;
    for (const lane of this.model.lanes.values()) {
      if (!this.firstSeen.has(lane.name)) this.firstSeen.set(lane.name, this.firstSeen.size);
      if (this.find !== "" && !lane.name.toLowerCase().includes(this.find)) continue;
      const last = lane.ended.at(-1);
      const ended = last === undefined ? 0 : (last.releasedAt ?? last.endedAt ?? 0);
      if (lane.live.size > 0 || ended > now - CALM) busy.push(lane);
      else if (ended > now - this.window) idle.push(lane);
    }
    for (const name of this.firstSeen.keys()) if (!this.model.lanes.has(name)) this.firstSeen.delete(name);
    const bySeen = (one, other) => this.firstSeen.get(one.name) - this.firstSeen.get(other.name);
    let order = [...busy.sort(bySeen), ...idle.sort(bySeen)];
    if (still) {
      const here = new Set(order);
      order = [...this.order.filter((lane) => here.has(lane)), ...order.filter((lane) => !known.has(lane.name))];
    }
    this.order = order;
    this.grid.show(order);
    const none = order.length === 0;
    this.empty.hidden = !none;
    this.grid.root.hidden = none;
    if (none) fill(this.empty, this.find !== "" ? h("p", {}, "No session has this in its name.") : nothingYet());
  }

  /** Draws anew with the next frame, since time has passed. */
  paintSoon() {
    this.grid.paintSoon();
    this.#axis();
  }

  #axis() {
    const { width } = this;
    if (width === 0) return;
    const step = STEPS.find((each) => (each / this.window) * width > 70) ?? 3600;
    const marks = [];
    for (let back = step; back < this.window * 0.97; back += step) marks.push([-back, step < 60 ? `−${back} s` : `−${span(back).replace(/ 00 [ms]$/, "")}`]);
    marks.push([0, "now"]);
    while (this.ticks.children.length > marks.length) this.ticks.lastChild.remove();
    marks.forEach(([at, words], number) => {
      const element = this.ticks.children[number] ?? this.ticks.appendChild(h("span"));
      say(element, words);
      mark(element, "class", at === 0 ? "at-now" : null);
      const left = `${Math.round(this.#x(at, width))}px`;
      if (element.style.left !== left) element.style.left = left;
    });
  }

  #x(fromNow, width) {
    return ((fromNow + this.window) / (this.window * (1 + AHEAD))) * width;
  }

  // --- one lane ---------------------------------------------------------------------------------------------

  #make() {
    this.number += 1;
    const parts = {
      name: h("b"), says: h("small"), track: h("div", { class: "track", role: "presentation" }), queue: h("div", { class: "queue", role: "presentation" }),
      line: h("div", { class: "now-line" }), bars: [], chips: [], id: `lane-${this.number}`,
    };
    const header = h("div", { class: "lane-name", role: "rowheader" }, parts.name, parts.says);
    parts.header = header;
    parts.track.append(parts.line);
    const element = h("div", { class: "lane", role: "row" }, header, parts.track, parts.queue);
    element.parts = parts;
    return element;
  }

  /** The runs that a lane shows, in order: those that are over, the one at work, those that wait. */
  #runs(lane, now) {
    const since = now - this.window;
    const ended = lane.ended.filter((run) => (run.releasedAt ?? run.endedAt ?? 0) > since).slice(-40);
    const waiting = [];
    const busy = [];
    // A session's runs have their turns in order: behind one that waits nobody is at work.
    for (const run of lane.live.values()) {
      if (run.state !== "pending") busy.push(run);
      else if (waiting.push(run) === CHIPS) break;
    }
    return { drawn: [...ended, ...busy], waiting, more: lane.live.size - busy.length - waiting.length };
  }

  #cells(lane) {
    const { drawn, waiting } = this.#runs(lane, this.wire.now());
    return [...drawn, ...waiting].map((run) => run.id);
  }

  #paint(element, lane) {
    const { parts } = element;
    const { model } = this;
    const now = this.wire.now();
    const session = model.sessions.get(lane.name);
    const { drawn, waiting, more } = this.#runs(lane, now);
    mark(element, "id", parts.id);
    mark(parts.header, "data-lane", lane.name);
    say(parts.name, sessionName(lane.name, 40));
    mark(parts.name, "class", "other");
    let says = waitingWords(session, now, { brief: true });
    if (lane.live.size === 0) says = session?.queued > 0 ? `${session.queued} queued` : "idle";
    else if (session === undefined || session.waiting_on?.on === "input" || session.waiting_on?.on === "lock") {
      const first = lane.live.values().next().value;
      says = `${phaseWords(model.phaseOf(first))} ${span(now - model.sinceOf(first))}`;
    }
    say(parts.says, says);
    mark(parts.says, "data-kind", URGENT.has(session?.waiting_on?.on) ? "warn" : null);

    const { width } = this;
    const x = (at) => this.#x(at - now, width);
    const place = `${Math.round(x(now))}px`;
    if (parts.line.style.left !== place) parts.line.style.left = place;
    let used = 0;
    const put = (from, to, phase, run, kind, words, cell) => {
      const start = Math.max(-4, x(from));
      const long = Math.max(3, Math.min(width + 4, x(to)) - start);
      if (start + long < 0) return;
      const bar = parts.bars[used] ?? (parts.bars[used] = parts.track.appendChild(h("div", { class: "bar" })));
      used += 1;
      bar.hidden = false;
      mark(bar, "class", `bar${kind === "" ? "" : ` ${kind}`}${long < 56 ? " slim" : ""}${kind === "left" ? "" : this.#lit(run)}`);
      mark(bar, "data-phase", phase);
      mark(bar, "data-run", run.id);
      mark(bar, "data-cell", cell ? run.id : null);
      mark(bar, "id", cell ? `${parts.id}-${used}` : null);
      mark(bar, "role", cell ? "gridcell" : "presentation");
      mark(bar, "aria-label", cell ? this.#label(run, now) : null);
      const shift = `translateX(${start.toFixed(1)}px)`;
      if (bar.style.transform !== shift) bar.style.transform = shift;
      const size = `${long.toFixed(1)}px`;
      if (bar.style.width !== size) bar.style.width = size;
      say(bar, long > 56 && kind !== "wait" ? words : "");
      return bar;
    };
    for (const run of drawn) {
      const started = run.startedAt ?? run.endedAt ?? now;
      if (started - run.queuedAt > 0.05) put(run.queuedAt, started, "waiting", run, "wait", "");
      const post = run.endedAt !== null ? model.signals.get(run.signal)?.postAt : null;
      const end = run.endedAt ?? now;
      const phase = run.endedAt === null ? model.phaseOf(run) : run.state;
      const kind = line(model.signals.get(run.signal)?.kind ?? "", 30);
      if (run.startedAt !== null) put(started, end, phase, run, "", kind, true);
      else put(end - 0.01, end, phase, run, "", "", true);
      if (run.held || run.releasedAt !== null) {
        const over = run.releasedAt ?? now;
        put(end, Math.max(end, post ?? over), "held", run, "", "");
        if (post) put(post, over, "post", run, "", "post");
      }
      if (run.state === "running") this.#left(run, session, now, put);
    }
    for (const run of waiting) put(run.queuedAt, now, "waiting", run, "wait", "");
    for (let number = used; number < parts.bars.length; number += 1) parts.bars[number].hidden = true;
    this.#chips(parts, waiting, more, now);
    mark(element, "aria-label", `${sessionName(lane.name, 60)}: ${says}${waiting.length + more > 0 ? `; ${waiting.length + more} in line` : ""}`);
  }

  /** How long what a run does may still take, drawn beyond now. */
  #left(run, session, now, put) {
    const holds = (session?.holds ?? []).map((hold) => ({ left: hold.left - (now - session.at) }));
    const waiting = session?.waiting_on;
    if (holds.length === 0 && waiting?.left !== null && waiting?.left !== undefined && waiting.on !== "input") {
      holds.push({ left: waiting.left - (now - session.at) });
    }
    if (run.timeLimit) holds.push({ left: run.startedAt + run.timeLimit - now });
    if (holds.length === 0) return;
    // The first of them to end is what is drawn; the session's panel has them all.
    const first = holds.reduce((one, other) => (other.left < one.left ? other : one));
    if (first.left <= 0) return;
    const bar = put(now, now + first.left, "left", run, "left", first.left < 864000 ? `${clock(first.left)} left` : "");
    if (bar !== undefined) mark(bar, "data-kind", first.left < 15 ? "warn" : null);
  }

  #chips(parts, waiting, more, now) {
    const { model } = this;
    const all = more > 0 ? waiting.length + 1 : waiting.length;
    for (let number = 0; number < Math.max(all, parts.chips.length); number += 1) {
      const chip = parts.chips[number] ?? (parts.chips[number] = parts.queue.appendChild(h("div", { class: "chip" })));
      chip.hidden = number >= all;
      if (chip.hidden) continue;
      const run = waiting[number];
      mark(chip, "class", `chip${run === undefined ? " more" : this.#lit(run)}`);
      mark(chip, "data-phase", run === undefined ? null : model.phaseOf(run));
      mark(chip, "data-run", run?.id);
      mark(chip, "data-cell", run?.id);
      mark(chip, "id", run === undefined ? null : `${parts.id}-chip-${number}`);
      mark(chip, "role", run === undefined ? "presentation" : "gridcell");
      mark(chip, "aria-label", run === undefined ? null : this.#label(run, now));
      say(chip, run === undefined ? `+${more}` : span(now - run.queuedAt));
    }
  }

  #lit(run) {
    const found = this.lit?.get(run);
    return found === undefined ? "" : ` ${found}`;
  }

  /** What is heard of a run: all of its chain once the keyboard is on it, for that takes a walk along the chain. */
  #label(run, now) {
    if (this.grid.cell === run.id) return chainSentence(this.model, this.model.lines.chain(run), now);
    return `run ${brief(run.id)} ${phaseWords(this.model.phaseOf(run))}, ${span(now - this.model.sinceOf(run))}`;
  }

  /** Marks the runs of a chain in the lanes; null for none. */
  light(chain) {
    if (chain === null && this.lit === null) return;
    this.lit = chain === null ? null : new Map(chain.map(({ run }, number) => [run, number === 0 ? "lit" : "linked"]));
    this.grid.paintSoon();
  }
}

function swatch(phase) {
  const found = h("i", { "data-phase": phase });
  found.style.background = "var(--paint)";
  return found;
}

/** What to do when nothing has happened yet. */
export function nothingYet() {
  return [
    h("h3", {}, "Nothing has happened in the last while"),
    h("p", {}, "A signal starts work. Emit one from your code, by POST /signals, or in a terminal:"),
    h("pre", {}, "concorde-trio emit KIND '{\"text\": \"Good morning\"}'"),
    h("p", {}, "Its runs appear here as they are queued. To see what a busy house looks like: concorde-trio demo --keep"),
  ];
}

