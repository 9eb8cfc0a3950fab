// The lists: runs, locks, sessions, signals. The law: a list is made anew at most a few times a second, however much happens,
// and without sorting what is in order already; what is in sight is painted with the next frame.

import { lockWords, phaseWords, waitingWords } from "./chain.js";
import { fill, h, mark, say } from "./dom.js";
import { Grid } from "./grid.js";
import { nothingYet } from "./lanes.js";
import { brief, count, line, moment, runName, sessionName, span } from "./text.js";

const HEIGHT = 34;
let made = 0;

/** One list. `kind`: a name; `columns`: `[title, paint(cell, item), class]`; `items(find, state)`; `key(item)`; `open(item)`. */
class List {
  constructor(panel, { kind, label, columns, states, items, key, open, empty, says }) {
    this.items = items;
    this.kind = kind;
    this.find = "";
    this.state = "";
    this.says = says;
    this.emptyWords = empty;
    const find = h("input", { type: "search", "aria-label": `Find in ${kind}`, placeholder: "Find by name, kind or id" });
    find.addEventListener("input", () => {
      this.find = find.value.trim().toLowerCase();
      this.refresh();
    });
    const choose = states && h("select", { "aria-label": `Which ${kind}` }, states.map(([value, words]) => h("option", { value }, words)));
    choose?.addEventListener("change", () => {
      this.state = choose.value;
      this.refresh();
    });
    this.choose = choose;
    this.summary = h("span", { class: "dim" });
    const heads = h("div", { class: `heads cols-${kind}`, role: "row" }, columns.map(([title, , type]) => h("span", { class: type, role: "columnheader" }, title)));
    const root = h("div", { class: "grid", role: "grid", "aria-label": label, "aria-colcount": columns.length });
    this.empty = h("div", { class: "empty", hidden: true });
    fill(panel, h("div", { class: "bar-top" }, find, choose, this.summary), heads, root, this.empty);
    this.heads = heads;
    this.grid = new Grid(root, {
      height: HEIGHT,
      make: () => {
        made += 1;
        return h("div", { class: `row cols-${kind}`, role: "row", "data-row": `row-${made}` }, columns.map(([, , type]) => h("span", { class: type, role: "gridcell" })));
      },
      paint: (element, item) => {
        mark(element, "id", element.dataset.row);
        element.item = item;
        columns.forEach(([, paint], number) => paint(element.children[number], item));
      },
      key,
      open,
    });
    root.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row?.item === undefined) return;
      this.grid.select(key(row.item));
      open(row.item);
    });
  }

  /** Which items there are. */
  refresh() {
    const found = this.items(this.find, this.state);
    this.grid.show(found);
    const none = found.length === 0;
    this.empty.hidden = !none;
    this.heads.hidden = this.grid.root.hidden = none;
    if (none) fill(this.empty, this.find === "" && this.state === "" ? this.emptyWords() : h("p", {}, "Nothing here is like that."));
    say(this.summary, this.says(found));
  }

  paintSoon() {
    this.grid.paintSoon();
  }

  /** Shows those in this state. */
  only(state) {
    this.choose.value = this.state = state;
    this.refresh();
  }
}

function badge(cell, phase, words = phaseWords(phase)) {
  mark(cell, "class", "badge");
  mark(cell, "data-phase", phase);
  say(cell, words);
}

const SHORT = { waiting: "waiting", ready: "ready", running: "running", stopping: "stopping", held: "held", post: "post", handling: "in handle", posting: "post" };

const LOOKED_AT = 200; // runs of one signal, to see whether one of them has started

/** The phase of a signal: its state, or how far it is while it is processing. */
export function signalPhase(model, signal) {
  if (signal.state !== "processing") return signal.state;
  if (signal.phase !== "running") return signal.phase ?? "handling";
  const started = signal.runs.length === 0 || signal.runs.slice(0, LOOKED_AT).some((id) => (model.runs.get(id)?.startedAt ?? null) !== null);
  return started ? "running" : "waiting";
}

export function runList(panel, model, wire, open) {
  const order = { stopping: 0, running: 0, held: 1, post: 1, ready: 2, waiting: 3 };
  return new List(panel, {
    kind: "runs",
    label: "Runs",
    states: [["", "All runs"], ["live", "Not over"], ["waiting", "Waiting"], ["running", "Running"], ["held", "Held or in post"], ["bad", "Failed, limited or cancelled"]],
    columns: [
      ["State", (cell, run) => badge(cell, model.phaseOf(run), SHORT[model.phaseOf(run)] ?? run.state)],
      ["Session", (cell, run) => say(cell, sessionName(run.session))],
      ["Needs", (cell, run) => say(cell, run.resources.map((each) => line(each, 40)).join(", ")), "dim"],
      ["For", (cell, run) => say(cell, span(run.endedAt === null || run.held ? wire.now() - model.sinceOf(run) : run.endedAt - (run.startedAt ?? run.queuedAt))), "num"],
      ["Run", (cell, run) => say(cell, brief(run.id)), "mono dim"],
      ["Why", (cell, run) => {
        const edge = model.lines.first(run);
        say(cell, edge !== null ? `${lockWords(edge.space, edge.name)}, behind ${sessionName(edge.blocker.session, 30)}` : run.error !== null ? line(run.error) : line(model.signals.get(run.signal)?.kind ?? ""));
      }],
    ],
    items: (find, state) => {
      const buckets = [[], [], [], []];
      const match = (run) => find === "" || run.session.toLowerCase().includes(find) || run.id.toLowerCase().includes(find)
        || run.resources.some((each) => each.toLowerCase().includes(find)) || (model.signals.get(run.signal)?.kind ?? "").toLowerCase().includes(find);
      if (state !== "bad") {
        for (const run of model.live.values()) {
          const place = order[model.phaseOf(run)] ?? 3;
          if (state === "running" && place !== 0) continue;
          if (state === "held" && place !== 1) continue;
          if (state === "waiting" && place < 2) continue;
          if (match(run)) buckets[place].push(run);
        }
      }
      const found = buckets.flat();
      if (state === "" || state === "bad") {
        for (let number = model.ended.length - 1; number >= 0; number -= 1) {
          const run = model.runs.get(model.ended[number]);
          if (run !== undefined && !model.live.has(run.id) && (state === "" || run.state !== "done") && match(run)) found.push(run);
        }
      }
      return found;
    },
    says: (found) => `${count(found.length, "run")}${model.more > 0 ? `; ${model.more.toLocaleString("en")} more are in line and not listed` : ""}`,
    key: (run) => run.id,
    open,
    empty: nothingYet,
  });
}

export function lockList(panel, model, wire, open) {
  const split = (lock) => {
    const first = lock.runs.findIndex((run) => run.state === "pending");
    return first < 0 ? lock.runs.length : first;
  };
  return new List(panel, {
    kind: "locks",
    label: "Locks",
    states: [["", "All locks"], ["wanted", "With somebody in line"], ["session", "Sessions"], ["resource", "Resources"]],
    columns: [
      ["Kind", (cell, lock) => say(cell, lock.space), "dim"],
      ["Name", (cell, lock) => say(cell, lock.space === "session" ? sessionName(lock.name) : line(lock.name))],
      ["Held by", (cell, lock) => {
        const number = split(lock);
        const run = lock.runs[number - 1];
        say(cell, run === undefined ? (lock.runs.length > 0 ? "nobody yet" : "") : `${runName(run, 30)}, ${SHORT[model.phaseOf(run)]} ${span(wire.now() - model.sinceOf(run))}${number > 1 ? `, and ${number - 1} more` : ""}`);
      }],
      ["In line", (cell, lock) => say(cell, String(lock.runs.length - split(lock) || "")), "num"],
      ["Next", (cell, lock) => {
        const run = lock.runs[split(lock)];
        say(cell, run === undefined ? "" : `${runName(run, 30)}, ${span(wire.now() - run.queuedAt)}`);
      }],
    ],
    items: (find, state) => {
      const wanted = [];
      const others = [];
      for (const lock of model.lines.lines.values()) {
        if (find !== "" && !lock.name.toLowerCase().includes(find)) continue;
        if ((state === "session" || state === "resource") && lock.space !== state) continue;
        const waiting = lock.runs.at(-1).state === "pending" && lock.runs.length > 1;
        if (waiting) wanted.push(lock);
        else if (state !== "wanted") others.push(lock);
      }
      return [...wanted, ...others];
    },
    says: (found) => count(found.length, "lock"),
    key: (lock) => lock.key,
    open,
    empty: () => [h("h3", {}, "Nothing is locked"), h("p", {}, "A run locks its session and the resources that its prompt names, while it works. Emit a signal and they appear here:"), h("pre", {}, "concorde-trio emit KIND '{\"text\": \"Good morning\"}'")],
  });
}

export function sessionList(panel, model, wire, open) {
  const place = { approval: 0, backoff: 1, stopping: 1, model: 2, tool: 2, summary: 2, compaction: 2, lock: 3, input: 4 };
  const placeOf = (session) => place[session.waiting_on?.on] ?? 3;
  return new List(panel, {
    kind: "sessions",
    label: "Sessions",
    states: [["", "All sessions"], ["busy", "Busy"], ["asks", "Asking for an answer"], ["abandoned", "With abandoned work"], ["queued", "With queued input"]],
    columns: [
      ["Session", (cell, session) => say(cell, sessionName(session.name))],
      ["Status", (cell, session) => say(cell, session.held ? "held" : (session.waiting_on?.on ?? "")), "dim"],
      ["Waits for", (cell, session) => say(cell, session.waiting_on?.on === "input" ? "input" : waitingWords(session, wire.now()))],
      ["Abandoned", (cell, session) => say(cell, String(session.abandoned.filter((each) => each.ended === null).length || "")), "num"],
      ["Queued", (cell, session) => say(cell, String(session.queued || "")), "num"],
      ["Tokens", (cell, session) => say(cell, session.usage ? (session.usage.input_tokens + session.usage.output_tokens).toLocaleString("en") : ""), "num dim"],
    ],
    items: (find, state) => {
      const buckets = [[], [], [], [], []];
      for (const session of model.sessions.values()) {
        if (find !== "" && !session.name.toLowerCase().includes(find)) continue;
        const at = placeOf(session);
        if (state === "busy" && at > 3) continue;
        if (state === "asks" && session.approvals.length === 0) continue;
        if (state === "queued" && !session.queued) continue;
        if (state === "abandoned" && !session.abandoned.some((each) => each.ended === null)) continue;
        buckets[at].push(session);
      }
      return buckets.flat();
    },
    says: (found) => count(found.length, "session"),
    key: (session) => session.name,
    open,
    empty: () => [h("h3", {}, "No session is in memory"), h("p", {}, "Sessions appear here when they take a turn. Talk to one, where the gateway keeps sessions:"), h("pre", {}, "concorde-trio send NAME \"Good morning\" --wait"), h("p", {}, "A runtime that is a command or a function keeps none; its work is under Lanes and Runs.")],
  });
}

export function signalList(panel, model, wire, open) {
  return new List(panel, {
    kind: "signals",
    label: "Signals",
    states: [["", "All signals"], ["open", "Not settled"], ["failed", "Failed"], ["done", "Done"]],
    columns: [
      ["No.", (cell, signal) => say(cell, signal.seq === null ? "" : String(signal.seq)), "num dim"],
      ["Kind", (cell, signal) => say(cell, line(signal.kind))],
      ["State", (cell, signal) => badge(cell, signalPhase(model, signal), SHORT[signalPhase(model, signal)] ?? signal.state)],
      ["Emitted", (cell, signal) => say(cell, moment(signal.emittedAt ?? signal.claimedAt)), "dim"],
      ["Payload", (cell, signal) => say(cell, signal.payload === undefined ? "" : line(signal.payload, 200)), "mono"],
      ["Outcome", (cell, signal) => say(cell, signal.error !== null ? line(signal.error) : signal.settledAt !== null ? `after ${span(signal.settledAt - (signal.emittedAt ?? signal.claimedAt))}` : count(signal.runs.length, "run"))],
    ],
    items: (find, state) => {
      const found = [];
      for (const signal of model.signals.values()) {
        const open = signal.state === "pending" || signal.state === "processing";
        if (state === "open" && !open) continue;
        if ((state === "failed" || state === "done") && signal.state !== state) continue;
        if (find !== "" && !signal.kind.toLowerCase().includes(find) && !signal.id.includes(find) && !(signal.payload ?? "").toLowerCase().includes(find)) continue;
        found.push(signal);
      }
      return found.reverse();
    },
    says: (found) => count(found.length, "signal"),
    key: (signal) => signal.id,
    open,
    empty: nothingYet,
  });
}
