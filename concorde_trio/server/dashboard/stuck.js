// What is stuck and why, in the order in which it matters to somebody who was just woken up: what asks for an answer, what
// goes wrong, who holds up others. The law: every line says what it is, since when, and offers what can be done about it.

import { phaseWords, waitingWords } from "./chain.js";
import { button, h, mark, rebuild, say, tick, ticking } from "./dom.js";
import { brief, count, line, runName, sessionName, span } from "./text.js";

const SHOWN = 8;
const LONG = 60; // seconds after which waiting is called long
const RECENT = 900; // seconds for which a failure is mentioned

/** The figures at the top. */
export function figures(model) {
  const found = { running: 0, waiting: model.more, held: 0, asking: 0, failed: 0 };
  for (const run of model.live.values()) {
    if (run.state === "running") found.running += 1;
    else if (run.state === "pending") found.waiting += 1;
    else found.held += 1;
  }
  let busy = 0;
  for (const session of model.sessions.values()) {
    found.asking += session.approvals.length;
    if (session.loaded) busy += 1;
  }
  return { ...found, sessions: busy };
}

/** Signals that failed lately, newest first. */
function failures(model, now) {
  const found = [];
  for (let number = model.settled.length - 1; number >= 0 && found.length < 100; number -= 1) {
    const signal = model.signals.get(model.settled[number]);
    if (signal === undefined) continue;
    if (signal.settledAt < now - RECENT) break;
    if (signal.state === "failed") found.push(signal);
  }
  return found;
}

/** All that deserves a look: `[{key, kind, weight, …}]`, the heaviest first. */
export function attention(model, now) {
  const found = [];
  for (const session of model.sessions.values()) {
    for (const approval of session.approvals) {
      found.push({ key: `ask ${session.name} ${approval.call_id}`, kind: "ask", weight: 5e9 - (approval.left ?? 0), session, approval });
    }
    const on = session.waiting_on?.on;
    if (on === "backoff") found.push({ key: `backoff ${session.name}`, kind: "warn", weight: 3e9, session, on });
    const left = session.abandoned.filter((each) => each.ended === null && !each.expected);
    if (left.length > 0) found.push({ key: `left ${session.name} ${left.map((each) => each.work)}`, kind: "warn", weight: 2e9, session, left });
  }
  const waiting = [];
  for (const run of model.live.values()) {
    if (run.state === "pending") waiting.push(run);
    if (run.stopping !== null && now - run.stopping > 10) found.push({ key: `stopping ${run.id}`, kind: "bad", weight: 4e9, run });
  }
  for (const [run, { count: others, oldest }] of model.lines.roots(waiting)) {
    if (run.stopping !== null && now - run.stopping > 10) continue;
    const long = now - oldest.queuedAt > LONG;
    found.push({ key: `root ${run.id} ${oldest.id} ${model.phaseOf(run)}`, kind: long ? "warn" : "calm", weight: others * 1000 + (now - oldest.queuedAt) + (long ? 1e9 : 0), run, others, oldest });
  }
  return found.sort((one, other) => other.weight - one.weight);
}

export class Stuck {
  /** `shown`: opens runs, sessions and views; `actions`: what can be done. */
  constructor(places, model, wire, actions, shown) {
    this.places = places;
    this.model = model;
    this.wire = wire;
    this.actions = actions;
    this.shown = shown;
    this.spoken = "";
  }

  /** Shows nothing any more. */
  clear() {
    this.summary = undefined;
    rebuild(this.places.stuck, "", () => []);
    this.places.counts.replaceChildren();
  }

  /** Looks again. Cheap enough to be done twice a second with 10,000 runs. */
  refresh() {
    const now = this.wire.now();
    const found = attention(this.model, now);
    const numbers = figures(this.model);
    const failed = failures(this.model, now);
    this.#figures(numbers, failed.length);
    const list = found.slice(0, SHOWN);
    const others = list.map((each) => each.others ?? "");
    const signature = JSON.stringify([list.map((each) => [each.key, each.kind, each.approval?.arguments?.length, each.session?.waiting_on?.on]), others, found.length, found.length === 0 ? [numbers.running, this.model.live.size] : 0]);
    rebuild(this.places.stuck, signature, () => this.#list(list, found.length - list.length, numbers));
    tick(this.places.stuck);
    this.summary = this.#summary(found, numbers, failed.length);
  }

  #figures(numbers, failed) {
    const shown = [
      ["running", numbers.running, "running", ""],
      ["waiting", numbers.waiting, "waiting", ""],
      ["held", numbers.held, "held or in post", ""],
      ["sessions", numbers.sessions, numbers.sessions === 1 ? "session in memory" : "sessions in memory", ""],
      ["asking", numbers.asking, numbers.asking === 1 ? "question for you" : "questions for you", "hint"],
      ["failed", failed, "failed in the last 15 minutes", "alarm"],
    ];
    const { counts } = this.places;
    if (counts.children.length === 0) counts.append(...shown.map(() => h("div", {}, h("dt"), h("dd"))));
    shown.forEach(([, number, words, type], place) => {
      const [term, value] = counts.children[place].children;
      say(term, words);
      say(value, number.toLocaleString("en"));
      mark(counts.children[place], "class", number === 0 ? "none" : type);
    });
  }

  #summary(found, numbers, failed) {
    const asks = found.filter((each) => each.kind === "ask").length;
    const long = found.filter((each) => each.kind === "warn" || each.kind === "bad").length;
    const parts = [`${numbers.running} running, ${numbers.waiting} waiting`];
    if (asks > 0) parts.push(`${count(asks, "question")} for you`);
    if (long > 0) parts.push(`${count(long, "thing")} stuck`);
    if (failed > 0) parts.push(`${failed} failed lately`);
    return parts.join("; ");
  }

  #list(list, more, numbers) {
    if (list.length === 0) {
      return h("p", { class: "calm" }, h("strong", {}, "Nothing is stuck."), numbers.running > 0 ? ` ${count(numbers.running, "run")} at work, and nobody waits for another.` : " Nothing runs.");
    }
    return [
      h("ul", { "aria-label": "What is stuck, and what asks for you" }, list.map((each) => h("li", { "data-kind": each.kind }, this.#line(each)))),
      more > 0 ? h("p", { class: "dim" }, `and ${more.toLocaleString("en")} more; see Runs and Sessions`) : null,
    ];
  }

  #line(each) {
    if (each.kind === "ask") return this.#asks(each);
    if (each.session !== undefined) return this.#ofSession(each);
    return this.#ofRun(each);
  }

  #asks({ key, session, approval }) {
    const given = { ...approval, shown: line(approval.arguments ?? "", 2000) };
    return [
      h("div", { class: "what" },
        h("strong", { class: "other" }, `${sessionName(session.name, 40)} asks: may it call ${line(approval.tool, 40)}?`),
        ticking(() => `${line(approval.arguments ?? approval.kind, 90)} · ${span(approval.left - (this.wire.now() - session.at))} left, then it is denied`, { class: "why other" })),
      h("div", { class: "acts" },
        button("Allow", { "data-key": `${key} allow`, "aria-label": `Allow ${line(approval.tool, 40)} of ${sessionName(session.name, 40)}` }, () => this.actions.approve(session.name, given, true)),
        button("Deny", { "data-key": `${key} deny`, class: "danger", "aria-label": `Deny ${line(approval.tool, 40)} of ${sessionName(session.name, 40)}` }, () => this.actions.approve(session.name, given, false)),
        button("Look", { "data-key": `${key} look`, class: "quiet", "aria-label": `Look at ${sessionName(session.name, 40)}` }, () => this.shown.session(session.name))),
    ];
  }

  #ofSession({ key, session, left }) {
    const what = left === undefined
      ? ["keeps a distance from its model", () => waitingWords(this.model.sessions.get(session.name), this.wire.now())]
      : [`left ${count(left.length, "piece")} of work running that nobody waits for`, () => left.slice(0, 3).map((each) => `${line(each.what, 20)}${each.number === null ? "" : ` ${each.number}`}${each.tool ? ` of ${line(each.tool, 30)}` : ""}, ${span(this.wire.now() - each.since)}`).join("; ")];
    return [
      h("div", { class: "what" }, h("strong", { class: "other" }, `${sessionName(session.name, 40)} ${what[0]}`), ticking(what[1], { class: "why other" })),
      h("div", { class: "acts" },
        left === undefined ? button("Interrupt", { "data-key": `${key} interrupt`, class: "danger", "aria-label": `Interrupt ${sessionName(session.name, 40)}` }, () => this.actions.interrupt(session)) : null,
        button("Look", { "data-key": `${key} look`, class: "quiet", "aria-label": `Look at ${sessionName(session.name, 40)}` }, () => this.shown.session(session.name))),
    ];
  }

  #ofRun({ key, run, others, oldest }) {
    const { model, wire } = this;
    const held = others === undefined ? "was told to stop, and is not over" : `${others === 1 ? "holds up 1 run" : `holds up ${others.toLocaleString("en")} runs`}`;
    const why = () => {
      const session = model.sessions.get(run.session);
      const busy = run.state === "running" && session !== undefined && session.waiting_on?.on !== "input" ? `, with ${waitingWords(session, wire.now())}` : "";
      const longest = oldest === undefined ? "" : `; the longest waits ${span(wire.now() - oldest.queuedAt)}`;
      return `${phaseWords(model.phaseOf(run))} for ${span(wire.now() - model.sinceOf(run))}${busy}${longest}`;
    };
    const session = model.sessions.get(run.session);
    return [
      h("div", { class: "what" }, h("strong", { class: "other" }, `${runName(run)} ${held}`), ticking(why, { class: "why other" })),
      h("div", { class: "acts" },
        run.state === "running" && session?.loaded ? button("Interrupt", { "data-key": `${key} interrupt`, class: "danger", "aria-label": `Interrupt ${sessionName(run.session, 40)}` }, () => this.actions.interrupt(session)) : null,
        run.state === "running" || run.state === "pending" ? button("Cancel", { "data-key": `${key} cancel`, class: "danger", "aria-label": `Cancel run ${brief(run.id)} of ${sessionName(run.session, 40)}` }, () => this.actions.cancelRun(run, others ?? 0)) : null,
        button("Look", { "data-key": `${key} look`, class: "quiet", "aria-label": `Look at run ${brief(run.id)} of ${sessionName(run.session, 40)}` }, () => this.shown.run(run))),
    ];
  }
}
