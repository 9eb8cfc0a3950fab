// The chain of who waits for whom and why, to its root: as a list for the card that stands by a run, and for the panel.

import { button, fill, h, ticking } from "./dom.js";
import { brief, count, line, runName, sessionName, span } from "./text.js";

const ENDS = 3; // hops shown at either end of a long chain
const WORDS = {
  waiting: "waits", ready: "may start", running: "runs", stopping: "is being stopped", held: "has ended, kept for its post phase",
  post: "in its post phase", done: "done", failed: "failed", limited: "limited", cancelled: "cancelled",
};

/** A phase in words. */
export function phaseWords(phase) {
  return WORDS[phase] ?? phase;
}

/** What a lock is called: `session "ann"`. */
export function lockWords(space, name) {
  return `${space} “${line(name, 60)}”`;
}

/** What a session waits for, in one line: `the model, 12 s; 4 m 48 s left, then the turn fails`. */
export function waitingWords(session, now, { brief: short = false } = {}) {
  const waiting = session?.waiting_on;
  if (waiting === undefined || waiting === null) return "";
  const passed = now - session.at;
  const names = {
    model: "the model", compaction: "compaction", summary: "a summary", tool: "a tool", approval: "a person’s answer",
    backoff: "a pause before it asks again", stopping: "work to stop", lock: "its turn", input: "input",
  };
  let said = names[waiting.on] ?? line(waiting.on, 30);
  if (waiting.on === "tool" && waiting.about) said = line(waiting.about.replace(/ \(call [^)]*\)/g, ""), 60);
  else if (waiting.on === "approval" && waiting.about) said = `an answer: ${line(waiting.about.replace(/ \(call ([^,)]*)(, )?/g, " ("), 60)}`;
  else if (waiting.about && waiting.on !== "input") said += ` (${line(waiting.about, 70)})`;
  if (waiting.since !== null && waiting.since !== undefined && waiting.on !== "input") said += `, ${span(waiting.since + passed)}`;
  if (!short && waiting.left !== null && waiting.left !== undefined) {
    said += `; ${span(waiting.left - passed)} left${waiting.then ? `, then ${line(waiting.then, 80)}` : ""}`;
  }
  return said;
}

/** One run of a chain. `now()`: the server's time. `go(run)`, if given, makes it something to press. */
function who(model, run, now, go) {
  const name = runName(run);
  return h(
    "div",
    { class: "who" },
    go ? button(name, { class: "text other", "data-key": `go ${run.id}` }, () => go(run)) : h("b", { class: "other" }, name),
    ticking(() => `${phaseWords(model.phaseOf(run))}${model.sinceOf(run) ? ` for ${span(now() - model.sinceOf(run))}` : ""}`, { class: "dim" }),
  );
}

function because(edges) {
  const [first, ...others] = edges;
  const says = (edge) => [h("em", { class: "other" }, lockWords(edge.space, edge.name)), edge.position > 1 ? `, number ${edge.position + 1} in line` : ""];
  // The chain goes on with the first; who is in the way of the others is said here.
  const aside = others.slice(0, 3).map((edge) => h("div", { class: "because" }, "waits for ", says(edge), h("span", { class: "other" }, `, behind ${runName(edge.blocker)}`)));
  if (others.length > 3) aside.push(h("div", { class: "because" }, `waits for ${others.length - 3} more`));
  return [...aside, h("div", { class: "because" }, aside.length > 0 ? "and for " : "waits for ", says(first), ", behind:")];
}

/** Why the root itself is not through: what its session does, or what it is kept for. */
function rootSays(model, run, now) {
  const phase = model.phaseOf(run);
  if (phase === "post") return "keeps its locks until the post phase of its handler is over";
  if (phase === "held") {
    const open = (model.signals.get(run.signal)?.runs ?? []).filter((id) => !model.runs.get(id)?.endedAt).length;
    return `keeps its locks until the post phase; ${count(open, "run")} of its signal ${open === 1 ? "has" : "have"} not ended`;
  }
  if (phase === "ready") return "waits for a place among those that may run; nothing else holds it back";
  const session = model.sessions.get(run.session);
  if (session !== undefined && run.state === "running" && session.waiting_on?.on !== "input") return `is busy with ${waitingWords(session, now)}`;
  return phase === "stopping" ? "was told to stop and is not over yet" : "is at work";
}

/** A chain in one sentence, for who hears the page. */
export function chainSentence(model, chain, now) {
  const { run, edges } = chain[0];
  const start = `Run ${brief(run.id)} of ${sessionName(run.session, 40)} ${phaseWords(model.phaseOf(run))}`;
  const since = model.sinceOf(run) ? ` for ${span(now - model.sinceOf(run))}` : "";
  if (edges.length === 0) return `${start}${since}`;
  const [{ space, name, blocker, position }] = edges;
  const root = chain.at(-1).run;
  const first = `${start}${since}, for ${lockWords(space, name)}, behind run ${brief(blocker.id)} of ${sessionName(blocker.session, 40)}${position > 1 ? `, number ${position + 1} in line` : ""}`;
  return root === blocker ? `${first}, which ${rootSays(model, root, now)}` : `${first}; at the root is ${sessionName(root.session, 40)}, ${rootSays(model, root, now)}`;
}

/** The chain of a run as a list. `chain`: what `Lines.chain` gives. `now` and `go`: as above. */
export function chainList(model, chain, now, go) {
  const items = [];
  const skipped = chain.length - 2 * ENDS;
  chain.forEach(({ run, edges }, number) => {
    if (skipped > 1 && number >= ENDS && number < chain.length - ENDS) {
      if (number === ENDS) items.push(h("li", { class: "skip-over" }, `… ${count(skipped, "run")} more, each waiting for the next …`));
      return;
    }
    const last = number === chain.length - 1;
    items.push(
      h(
        "li",
        { "data-phase": model.phaseOf(run), "data-run": run.id },
        who(model, run, now, number > 0 ? go : undefined),
        last ? ticking(() => rootSays(model, run, now()), { class: "because other" }) : because(edges),
        last && chain.length > 1 ? h("div", { class: "root" }, "the root of this chain") : null,
      ),
    );
  });
  return h("ol", { class: "chain" }, items);
}

/** The card that stands by a run while it is pointed at or focused. It can be pointed at itself, and Escape takes it away. */
export class Card {
  constructor(element) {
    this.element = element;
    this.run = null;
    element.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    element.addEventListener("pointerleave", () => this.hideSoon());
  }

  #leaving = 0;

  /** Shows why a run waits, beside `anchor` (a rectangle); `free`: the left edge of what it may hide. Gives the chain. */
  show(model, run, now, anchor, free) {
    clearTimeout(this.#leaving);
    this.run = run;
    const chain = model.lines.chain(run);
    const root = chain.at(-1).run;
    const title = chain.length > 1 ? `Waits for ${sessionName(root.session, 40)}, ${chain.length === 2 ? "directly" : `through ${count(chain.length - 2, "other")}`}` : `${sessionName(run.session, 40)} ${phaseWords(model.phaseOf(run))}`;
    fill(this.element, h("h3", { class: "other" }, title), chainList(model, chain, now), h("p", { class: "hint" }, "Press it for all there is to know."));
    this.element.hidden = false;
    const { width, height } = this.element.getBoundingClientRect();
    // Where there is a panel beside the lanes it stands over that, so that it hides no run that could be pointed at next.
    const beside = free + width < innerWidth;
    const left = Math.max(8, beside ? free : Math.min(anchor.left, innerWidth - width - 8));
    const below = beside ? anchor.top - 12 : anchor.bottom + 8;
    const above = beside ? innerHeight - height - 8 : anchor.top - height - 8;
    const top = below + height < innerHeight ? below : Math.max(8, above);
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    return chain;
  }

  hideSoon() {
    clearTimeout(this.#leaving);
    this.#leaving = setTimeout(() => this.hide(), 160);
  }

  hide() {
    clearTimeout(this.#leaving);
    this.run = null;
    this.element.hidden = true;
    this.gone?.();
  }
}
