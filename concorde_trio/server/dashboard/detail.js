// All there is to know of one run, session, signal or lock. The law: what the model knows is there at once and follows every
// event; what only the server knows (payload, prompt, answer) is asked for once it is looked at, shown as text, and cut
// where it is too long to be read here.

import { chainList, lockWords, phaseWords, waitingWords } from "./chain.js";
import { button, fill, h, rebuild, tick, ticking } from "./dom.js";
import { signalPhase } from "./lists.js";
import { brief, count, line, moment, runName, seen, sessionName, span } from "./text.js";
import { pathTo } from "./wire.js";

const MOST = 20_000; // characters of a payload or text that are shown
const SHOWN = 50; // things of one kind that are shown

export class Detail {
  /** `root`: the panel. `shown`: opens others. `failed(text)` hears what could not be asked. */
  constructor(root, model, wire, actions, shown) {
    this.root = root;
    this.model = model;
    this.wire = wire;
    this.actions = actions;
    this.shown = shown;
    this.on = null; // {type, id}
    this.extra = null; // what the server said of it
    this.refused = null;
    this.asked = 0;
    this.close();
  }

  /** Shows one thing. `type`: run, session, signal or lock. */
  open(type, id) {
    if (this.on?.type !== type || this.on.id !== id) {
      this.on = { type, id };
      this.extra = this.refused = null;
      fill(this.root, h("div", { id: "detail-head" }), h("div", { id: "detail-live" }), h("div", { id: "detail-extra" }));
      this.root.scrollTop = 0;
    }
    this.refresh();
    void this.ask();
  }

  /** Shows no one thing, but what went wrong lately. */
  close() {
    this.on = null;
    fill(
      this.root,
      h("h2", { id: "detail-title" }, "What went wrong lately"),
      h("ul", { class: "news" }),
      h("p", { class: "under help" }, "Point at a run that waits, or move to it with the arrow keys, to see for whom and why. Press it, and all that is known of it stands here."),
    );
    this.refresh();
  }

  #news() {
    const { news } = this.model;
    const list = this.root.children[1];
    rebuild(list, `${news.length} ${news.at(-1)?.at}`, () =>
      news.length === 0
        ? h("li", { class: "dim" }, "Nothing that was seen here.")
        : news.slice(-SHOWN).toReversed().map((each, number) => {
            const words = line(each.text, 300);
            return h("li", {}, h("span", { class: "dim" }, moment(each.at)), each.type === null ? h("span", { class: "other" }, words) : button(words, { class: "text other", "data-key": `news ${each.at} ${number}` }, () => this.shown.thing(each.type, each.id)));
          }),
    );
  }

  /** Asks the server for what the model does not know. */
  async ask() {
    if (this.on === null || this.on.type === "lock") return;
    const { type, id } = this.on;
    const number = (this.asked += 1);
    try {
      const extra = await this.wire.get(pathTo(`${type}s`, id));
      if (number !== this.asked) return;
      this.extra = extra;
      this.refused = null;
      if (type === "session") this.model.putSession(extra, this.wire.now());
    } catch (error) {
      if (number !== this.asked) return;
      this.refused = error.status === 404 ? null : error.message;
    }
    this.refresh();
  }

  /** Looks again at what the model says, and lets the times go on. */
  refresh() {
    if (this.on === null) {
      this.#news();
      return;
    }
    const { type, id } = this.on;
    const [head, live, extra] = this.root.children;
    const known = { run: this.model.runs.get(id), session: this.model.sessions.get(id), signal: this.model.signals.get(id), lock: this.model.lines.lines.get(id) }[type];
    this[`show_${type}`](head, live, extra, known, id);
    tick(this.root);
  }

  #head(title, under, acts) {
    return [
      h("div", { class: "head" }, h("h2", { id: "detail-title", class: "other" }, title), button("Close", { class: "quiet", "data-key": "close" }, () => this.shown.nothing())),
      h("div", { class: "under" }, under),
      h("div", { class: "acts" }, acts),
    ];
  }

  // --- run --------------------------------------------------------------------------------------------------

  show_run(head, live, extra, run, id) {
    const { model, wire } = this;
    if (run === undefined) {
      this.#gone(head, live, "run", id);
      this.#told(extra);
      return;
    }
    const phase = model.phaseOf(run);
    const signal = model.signals.get(run.signal);
    const session = model.sessions.get(run.session);
    const chain = model.lines.chain(run);
    rebuild(head, JSON.stringify([run.id, phase, session?.loaded]), () =>
      this.#head(
        runName(run),
        [
          h("span", { class: "badge", "data-phase": phase }, phaseWords(phase)),
          run.endedAt === null || run.held ? ticking(() => `for ${span(wire.now() - model.sinceOf(run))}`) : h("span", {}, `after ${span(run.endedAt - (run.startedAt ?? run.queuedAt))}`),
        ],
        [
          run.state === "running" && session?.loaded ? button("Interrupt the session", { class: "danger", "data-key": "interrupt" }, () => this.actions.interrupt(session)) : null,
          run.state === "running" || run.state === "pending" ? button("Cancel the run", { class: "danger", "data-key": "cancel" }, () => this.actions.cancelRun(run, 0)) : null,
          button("Its session", { "data-key": "session" }, () => this.shown.session(run.session)),
          signal ? button("Its signal", { "data-key": "signal" }, () => this.shown.signal(signal)) : null,
        ],
      ),
    );
    rebuild(live, JSON.stringify([chain.map((each) => [each.run.id, model.phaseOf(each.run), each.edges.map((edge) => edge.position)]), run.error, run.startedAt, run.endedAt]), () => [
      run.state === "pending" ? [h("h3", {}, chain.length > 1 ? "For whom it waits, and why" : "Why it has not started"), chainList(model, chain, () => wire.now(), (other) => this.shown.run(other))] : null,
      run.error !== null ? [h("h3", {}, "Error"), h("p", { class: "error other" }, seen(run.error, MOST))] : null,
      h("h3", {}, "Times and locks"),
      facts([
        ["Locks", [run.session, ...run.resources].map((name, number) => lockWords(number === 0 ? "session" : "resource", name)).join(", ")],
        ["Kind", signal?.kind],
        ["Queued", moment(run.queuedAt)],
        ["Started", moment(run.startedAt)],
        ["Ended", moment(run.endedAt)],
        ["Time limit", run.timeLimit === null ? null : span(run.timeLimit)],
        ["Run id", run.id],
        ["Signal id", run.signal],
      ]),
    ]);
    this.#told(extra);
  }

  #told(extra) {
    const told = this.extra;
    rebuild(extra, JSON.stringify([told, this.refused]), () => [
      this.refused === null ? null : h("p", { class: "error" }, `More could not be asked: ${line(this.refused)}`),
      told === null ? null : [block("Prompt", told.prompt), block("Answer", told.text), told.context === null || told.context === undefined ? null : block("Context", JSON.stringify(told.context, null, 2)),
        told.usage ? [h("h3", {}, "Usage"), facts([["Tokens in", told.usage.input_tokens.toLocaleString("en")], ["Tokens out", told.usage.output_tokens.toLocaleString("en")], ["Cost", told.usage.cost]])] : null],
    ]);
  }

  // --- session ----------------------------------------------------------------------------------------------

  show_session(head, live, extra, session, name) {
    const { model, wire } = this;
    const lane = model.lanes.get(name);
    const busy = [...(lane?.live.values() ?? [])];
    const running = busy.find((run) => run.state === "running");
    rebuild(head, JSON.stringify([name, session?.loaded, session?.held, session === undefined]), () =>
      this.#head(
        sessionName(name, 100),
        session === undefined ? h("span", {}, "a session that is not in memory") : ticking(() => `waits for ${waitingWords(model.sessions.get(name), wire.now())}`, { class: "other" }),
        [
          session?.loaded ? button("Interrupt", { class: "danger", "data-key": "interrupt" }, () => this.actions.interrupt(session)) : null,
          session?.held ? button("Let it go on", { "data-key": "resume" }, () => this.actions.resume(session)) : null,
        ],
      ),
    );
    const shown = session ?? { approvals: [], holds: [], queue: [], abandoned: [], queued: 0 };
    const signature = [shown.holds.map((each) => [each.what, each.call_id, each.epoch]), shown.approvals, shown.queue.map((each) => each.id), shown.abandoned, shown.queued, busy.map((run) => [run.id, model.phaseOf(run)]), shown.usage, shown.at];
    rebuild(live, JSON.stringify(signature), () => [
      shown.approvals.length > 0 ? [h("h3", {}, "It asks"), h("ul", { class: "things" }, shown.approvals.map((each) => this.#approval(session, each)))] : null,
      shown.holds.length > 0 ? [h("h3", {}, "What holds it, and how long that may last"), h("ul", { class: "things" }, shown.holds.map((hold) => this.#hold(session, hold)))] : null,
      [h("h3", {}, "Runs"), busy.length === 0 ? h("p", { class: "dim" }, "None is in flight or in line.") : h("ul", { class: "things" }, busy.slice(0, SHOWN).map((run) => this.#run(run)), busy.length > SHOWN ? h("li", {}, `and ${busy.length - SHOWN} more`) : null)],
      [h("h3", {}, "Queued input"), shown.queue.length === 0 ? h("p", { class: "dim" }, shown.queued > 0 ? `${shown.queued} queued` : "Nothing is queued.") : h("ol", { class: "things" }, shown.queue.slice(0, SHOWN).map((each) => h("li", {}, h("div", { class: "line" }, h("b", { class: "other" }, line(each.sender ?? "somebody", 60)), h("span", { class: "dim" }, moment(each.at))), h("div", { class: "other" }, seen(each.text, 600)))), shown.queued > SHOWN ? h("li", {}, `and ${shown.queued - SHOWN} more`) : null)],
      shown.abandoned.length > 0 ? [h("h3", {}, "Abandoned work"), h("ul", { class: "things" }, shown.abandoned.slice(-SHOWN).map((each) => this.#abandoned(each)))] : null,
      shown.usage ? [h("h3", {}, "Usage"), facts([["Tokens in", shown.usage.input_tokens.toLocaleString("en")], ["Tokens out", shown.usage.output_tokens.toLocaleString("en")], ["Cost", shown.usage.cost], ["Messages", shown.messages]])] : null,
    ]);
    rebuild(extra, JSON.stringify([this.refused, running === undefined]), () => (this.refused === null ? [] : h("p", { class: "error" }, `More could not be asked: ${line(this.refused)}`)));
  }

  #approval(session, each) {
    const given = { ...each, shown: seen(each.arguments ?? "", 4000) };
    return h(
      "li",
      {},
      h("div", { class: "line" }, h("b", { class: "other" }, `${line(each.tool, 60)} (${line(each.kind, 20)})`), ticking(() => `${span(each.left - (this.wire.now() - session.at))} left, then denied`, { class: "dim" })),
      each.arguments === null ? null : h("pre", { class: "other", tabindex: "0" }, seen(each.arguments, 4000)),
      h("div", { class: "acts" }, button("Allow", { "data-key": `allow ${each.call_id}` }, () => this.actions.approve(session.name, given, true)), button("Deny", { class: "danger", "data-key": `deny ${each.call_id}` }, () => this.actions.approve(session.name, given, false))),
    );
  }

  #hold(session, hold) {
    const name = hold.tool ? line(hold.tool, 60) : hold.what === "llm" ? "model request" : "summary";
    const all = hold.since + hold.left;
    const gauge = h("i");
    const passed = () => this.wire.now() - session.at;
    const drawn = () => {
      const left = Math.max(0, hold.left - passed());
      gauge.style.transform = `scaleX(${Math.min(1, left / all).toFixed(3)})`;
      if (left < 15) gauge.dataset.kind = "warn";
      return `${span(left)} left`;
    };
    const progress = hold.last_progress === null ? "" : () => `, last progress ${span(hold.last_progress + passed())} ago`;
    return h(
      "li",
      {},
      h("div", { class: "line" }, h("b", { class: "other" }, name), ticking(drawn)),
      h("div", { class: "gauge", "aria-hidden": "true" }, gauge),
      ticking(() => `since ${span(hold.since + passed())}${progress === "" ? "" : progress()}${hold.call_id ? `; call ${line(hold.call_id, 40)}` : ""}`, { class: "dim other" }),
    );
  }

  #run(run) {
    return h("li", {}, h("div", { class: "line" }, button(brief(run.id), { class: "text mono", "data-key": `run ${run.id}` }, () => this.shown.run(run)), ticking(() => `${phaseWords(this.model.phaseOf(run))}${run.endedAt !== null && !run.held ? "" : ` for ${span(this.wire.now() - this.model.sinceOf(run))}`}`, { class: "badge", "data-phase": this.model.phaseOf(run) })));
  }

  #abandoned(each) {
    const what = `${line(each.what, 20)}${each.number === null ? "" : ` ${each.number}`}${each.tool ? ` of ${line(each.tool, 40)}` : ""}`;
    return h(
      "li",
      {},
      h("div", { class: "line" }, h("b", { class: "other" }, what), each.ended === null ? ticking(() => `still runs, ${span(this.wire.now() - each.since)}`) : h("span", { class: "dim" }, `ended ${moment(each.ended)}`)),
      each.about ? h("div", { class: "dim other" }, line(each.about, 200)) : null,
      each.late ? h("pre", { class: "other", tabindex: "0" }, seen(each.late, 2000)) : null,
    );
  }

  // --- signal -----------------------------------------------------------------------------------------------

  show_signal(head, live, extra, signal, id) {
    if (signal === undefined) {
      this.#gone(head, live, "signal", id);
      return;
    }
    const { model } = this;
    const phase = signalPhase(model, signal);
    rebuild(head, JSON.stringify([id, phase, signal.seq]), () =>
      this.#head(
        `${line(signal.kind, 80)}${signal.seq === null ? "" : ` #${signal.seq}`}`,
        [h("span", { class: "badge", "data-phase": phase }, phase), signal.settledAt === null ? null : h("span", {}, `after ${span(signal.settledAt - (signal.emittedAt ?? signal.claimedAt))}`), signal.interrupted ? h("span", {}, "a crash cut it") : null],
        [
          signal.state === "pending" || signal.state === "processing" ? button("Cancel the signal", { class: "danger", "data-key": "cancel" }, () => this.actions.cancelSignal(signal)) : button("Emit it again", { "data-key": "retry" }, () => this.actions.retry(signal)),
          h("a", { href: pathTo("signals", id), target: "_blank", rel: "noopener noreferrer", "data-key": "raw" }, "As JSON"),
        ],
      ),
    );
    const runs = signal.runs.map((each) => model.runs.get(each)).filter((run) => run !== undefined);
    rebuild(live, JSON.stringify([signal.error, runs.slice(0, SHOWN).map((run) => [run.id, model.phaseOf(run)]), runs.length]), () => [
      signal.error === null ? null : [h("h3", {}, "Error"), h("p", { class: "error other" }, seen(signal.error, MOST))],
      h("h3", {}, "Runs"),
      runs.length === 0 ? h("p", { class: "dim" }, "None.") : h("ul", { class: "things" }, runs.slice(0, SHOWN).map((run) => this.#run(run)), runs.length > SHOWN ? h("li", {}, `and ${runs.length - SHOWN} more; see Runs`) : null),
    ]);
    rebuild(extra, JSON.stringify([this.extra?.id, this.refused, this.extra?.state]), () => [
      this.refused === null ? null : h("p", { class: "error" }, `More could not be asked: ${line(this.refused)}`),
      this.extra === null ? null : [block("Payload", typeof this.extra.payload === "string" ? this.extra.payload : JSON.stringify(this.extra.payload, null, 2)),
        h("h3", {}, "Times"), facts([["Emitted", moment(this.extra.emitted_at)], ["Claimed", moment(this.extra.claimed_at)], ["Settled", moment(this.extra.settled_at)], ["Key", this.extra.key], ["Repeats", this.extra.retry_of], ["Signal id", id]])],
    ]);
  }

  // --- lock -------------------------------------------------------------------------------------------------

  show_lock(head, live, extra, lock, id) {
    const { model, wire } = this;
    const [space, name] = [id[0] === "s" ? "session" : "resource", id.slice(2)];
    const runs = lock?.runs ?? [];
    rebuild(head, id, () => this.#head(lockWords(space, name), h("span", {}, space === "session" ? "a conversation; one run at a time" : "a name that one run at a time may have"), space === "session" ? button("Its session", { "data-key": "session" }, () => this.shown.session(name)) : null));
    rebuild(live, JSON.stringify([runs.slice(0, SHOWN).map((run) => [run.id, model.phaseOf(run)]), runs.length]), () => [
      h("h3", {}, "Who has it, and who is in line"),
      runs.length === 0
        ? h("p", { class: "dim" }, "Nobody: it is free.")
        : h("ol", { class: "chain" }, runs.slice(0, SHOWN).map((run) => h("li", { "data-phase": model.phaseOf(run) },
          h("div", { class: "who" }, button(runName(run), { class: "text other", "data-key": `go ${run.id}` }, () => this.shown.run(run)), ticking(() => `${phaseWords(model.phaseOf(run))} for ${span(wire.now() - model.sinceOf(run))}`, { class: "dim" })))),
        runs.length > SHOWN ? h("li", { class: "skip-over" }, `and ${count(runs.length - SHOWN, "run")} more`) : null),
    ]);
    fill(extra);
  }

  #gone(head, live, what, id) {
    rebuild(head, `gone ${id}`, () => this.#head(`${what === "run" ? "Run" : "Signal"} ${brief(id)}`, h("span", {}, "is not among the last that are kept here"), null));
    rebuild(live, "gone", () => []);
  }
}

function block(title, text) {
  if (text === null || text === undefined || text === "") return null;
  const more = text.length - MOST;
  return [h("h3", {}, title), h("pre", { class: "other", tabindex: "0", "aria-label": title }, seen(text, MOST)), more > 0 ? h("p", { class: "dim" }, `${more.toLocaleString("en")} more characters`) : null];
}

function facts(rows) {
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", { class: "other" }, seen(String(value), 400))]));
}
