// What the page knows of the queue: a snapshot, and every event since, applied in order. The law: an event changes what it
// is about and costs no more however much is known; whoever shows something is told what kind of thing changed, and asks when
// it paints. Nothing here touches the document. Moments are the server's wall-clock seconds.

import { Lines } from "./lines.js";

const KEPT_ENDED = 10_000; // runs that are over and still listed
const KEPT_SETTLED = 5_000; // signals that are settled and still listed
const KEPT_LANE = 60; // ended runs that a lane still draws

const KEPT_LANES = 3_000;
const KEPT_NEWS = 100;

const OVER = new Set(["done", "failed", "limited", "cancelled"]);

export class Model {
  constructor() {
    this.listeners = new Set();
    this.clear();
  }

  /** Forgets everything. */
  clear() {
    this.signals = new Map();
    this.runs = new Map();
    this.live = new Map(); // unreleased runs, by id, in the order in which they were queued
    this.ended = []; // ids of runs that are over, oldest first
    this.settled = [];
    this.lanes = new Map(); // session → {name, live: Map, ended: [run]}
    this.sessions = new Map();
    this.lines = new Lines();
    this.holding = new Map(); // kind → whether its handler has a post phase, as far as that was seen
    this.worker = { status: "running", error: null };
    this.news = []; // what went wrong lately, `{at, text, bad, type, id}`, oldest first
    this.more = 0; // runs in line that the snapshot had no room for; they are behind all that it had
    this.order = 0;
    this.changed("all");
  }

  /** `heard(what)` hears that runs, signals, sessions, worker, or all of it changed. */
  listen(heard) {
    this.listeners.add(heard);
  }

  changed(what) {
    for (const heard of this.listeners) heard(what);
  }

  // --- signals and runs -------------------------------------------------------------------------------------

  /** Adds a signal or what is new of it. Only fields that are given change. */
  putSignal(fields) {
    let signal = this.signals.get(fields.id);
    if (signal === undefined) {
      signal = {
        id: fields.id, seq: null, kind: "", state: "pending", phase: null, error: null, interrupted: false,
        emittedAt: null, claimedAt: null, settledAt: null, postAt: null, holds: undefined, payload: undefined, runs: [],
      };
      this.signals.set(fields.id, signal);
    }
    const before = signal.settledAt;
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) signal[name] = value;
    if (before === null && signal.settledAt !== null) this.#settle(signal);
    if (signal.holds === undefined) signal.holds = this.holding.get(signal.kind);
    this.changed("signals");
    return signal;
  }

  /** Adds a run, or what is new of one. `held`: it has ended and keeps its locks. */
  putRun(fields) {
    let run = this.runs.get(fields.id);
    if (run === undefined) {
      this.order = Math.max(this.order + 1, fields.position ?? 0);
      run = {
        id: fields.id, signal: fields.signal, order: fields.position ?? this.order, session: fields.session,
        resources: fields.resources ?? [], timeLimit: fields.timeLimit ?? null, state: "pending", held: false, stopping: null,
        queuedAt: null, startedAt: null, endedAt: null, releasedAt: null, error: null,
      };
      this.runs.set(run.id, run);
      this.putSignal({ id: run.signal }).runs.push(run.id);
      if (!OVER.has(fields.state ?? "pending") || fields.held) this.#join(run);
      else this.#retire(run);
    }
    const before = this.phaseOf(run);
    for (const name of ["state", "held", "stopping", "queuedAt", "startedAt", "endedAt", "releasedAt", "error"]) {
      if (fields[name] !== undefined) run[name] = fields[name];
    }
    if (OVER.has(run.state) && !run.held && this.live.has(run.id)) this.#leave(run);
    else if (before !== this.phaseOf(run)) this.changed("runs");
    return run;
  }

  #join(run) {
    this.live.set(run.id, run);
    this.lines.join(run);
    this.laneOf(run.session).live.set(run.id, run);
    this.changed("runs");
  }

  #leave(run) {
    this.live.delete(run.id);
    this.lines.leave(run);
    this.laneOf(run.session).live.delete(run.id);
    this.#retire(run);
  }

  #retire(run) {
    const lane = this.laneOf(run.session);
    lane.ended.push(run);
    if (lane.ended.length > KEPT_LANE * 2) lane.ended.splice(0, lane.ended.length - KEPT_LANE);
    this.ended.push(run.id);
    if (this.ended.length > KEPT_ENDED + 500) {
      for (const id of this.ended.splice(0, this.ended.length - KEPT_ENDED)) if (!this.live.has(id)) this.runs.delete(id);
    }
    this.changed("runs");
  }

  laneOf(session) {
    let lane = this.lanes.get(session);
    if (lane === undefined) {
      lane = { name: session, live: new Map(), ended: [] };
      this.lanes.set(session, lane);
    }
    return lane;
  }

  /** Takes away lanes that have nothing since `moment`, and the oldest idle ones of too many: fresh sessions pile up. */
  sweepLanes(moment) {
    let tooMany = this.lanes.size - KEPT_LANES;
    for (const [name, lane] of this.lanes) {
      if (lane.live.size > 0) continue;
      const last = lane.ended.at(-1);
      if (tooMany > 0 || last === undefined || (last.releasedAt ?? last.endedAt ?? 0) < moment) {
        this.lanes.delete(name);
        tooMany -= 1;
      }
    }
  }

  /** waiting, ready, running, stopping, held, post, or how it ended. */
  phaseOf(run) {
    if (run.state === "pending") return this.lines.waits(run) ? "waiting" : "ready";
    if (run.state === "running") return run.stopping === null ? "running" : "stopping";
    if (run.held) return this.signals.get(run.signal)?.phase === "posting" ? "post" : "held";
    return run.state;
  }

  /** Since when a run is in its phase. */
  sinceOf(run) {
    if (run.state === "pending") return run.queuedAt;
    if (run.state === "running") return run.stopping ?? run.startedAt;
    if (run.held) return this.signals.get(run.signal)?.postAt ?? run.endedAt;
    return run.endedAt;
  }

  // --- events -----------------------------------------------------------------------------------------------

  /** Applies one event of the worker, as it stands in the stream. */
  take(event) {
    const act = this[`on${event.event}`];
    if (act !== undefined) act.call(this, event);
    if (event.session !== undefined && event.run_id === undefined) this.#ofSession(event);
  }

  onSignalEmitted(event) {
    this.putSignal({ id: event.signal_id, seq: event.seq, kind: event.kind, emittedAt: event.at });
  }

  onSignalClaimed(event) {
    this.putSignal({ id: event.signal_id, kind: event.kind, state: "processing", phase: "handling", claimedAt: event.at });
  }

  onHandleFailed(event) {
    this.putSignal({ id: event.signal_id, error: event.error });
  }

  onRunQueued(event) {
    this.putSignal({ id: event.signal_id, state: "processing", phase: "running" });
    this.putRun({
      id: event.run_id, signal: event.signal_id, session: event.session, resources: event.resources,
      position: event.position, queuedAt: event.at,
    });
  }

  onRunStarted(event) {
    if (!this.runs.has(event.run_id)) {
      this.more = Math.max(0, this.more - 1);
      this.putSignal({ id: event.signal_id, state: "processing", phase: "running" });
      this.putRun({ id: event.run_id, signal: event.signal_id, session: event.session, queuedAt: event.at });
    }
    this.putRun({ id: event.run_id, state: "running", startedAt: event.at });
  }

  onRunStopping(event) {
    const run = this.runs.get(event.run_id);
    if (run !== undefined) this.putRun({ id: run.id, stopping: event.at });
  }

  onRunEnded(event) {
    const run = this.runs.get(event.run_id);
    if (run === undefined) {
      this.more = Math.max(0, this.more - 1);
      return;
    }
    const held = event.held ?? (event.started && this.signals.get(run.signal)?.holds === true);
    this.putRun({ id: run.id, state: event.state, error: event.error, endedAt: event.at, stopping: null, held });
  }

  onPostStarted(event) {
    const signal = this.putSignal({ id: event.signal_id, phase: "posting", postAt: event.at, holds: true });
    this.holding.set(signal.kind, true);
    for (const id of signal.runs) {
      const run = this.runs.get(id);
      // It was taken for released, because nobody had said that this kind has a post phase.
      if (run !== undefined && !run.held && run.startedAt !== null) {
        run.held = true;
        if (!this.live.has(id)) this.#join(run);
      }
    }
    this.changed("runs");
  }

  onPostEnded(event) {
    this.#release(event.signal_id, event.at);
  }

  onSignalSettled(event) {
    const signal = this.putSignal({
      id: event.signal_id, kind: event.kind, state: event.state, phase: null, error: event.error, settledAt: event.at,
    });
    if (event.state === "failed") this.note(event.at, `${event.kind} failed: ${event.error}`, "signal", event.signal_id);
    if (signal.holds === undefined && signal.runs.length > 0) this.holding.set(signal.kind, false);
    this.#release(event.signal_id, event.at);
  }

  #settle(signal) {
    this.settled.push(signal.id);
    if (this.settled.length > KEPT_SETTLED + 200) {
      for (const id of this.settled.splice(0, this.settled.length - KEPT_SETTLED)) this.signals.delete(id);
    }
  }

  #release(signalId, at) {
    for (const id of this.signals.get(signalId)?.runs ?? []) {
      const run = this.runs.get(id);
      if (run?.held) this.putRun({ id, held: false, releasedAt: at });
    }
  }

  onSignalInterrupted(event) {
    this.putSignal({ id: event.signal_id, interrupted: true });
    this.note(event.at, `A stop or a crash cut a signal: ${event.what}`, "signal", event.signal_id);
  }

  onWorkerStopping(event) {
    this.worker = { ...this.worker, status: `stopping (${event.mode})` };
    this.changed("worker");
  }

  onWorkerStopped() {
    this.worker = { ...this.worker, status: "stopped" };
    this.changed("worker");
  }

  // --- what went wrong ----------------------------------------------------------------------------------------

  /** Keeps what an operator would want to have seen. `type` and `id` say what it is about. */
  note(at, text, type = null, id = null) {
    this.news.push({ at, text, type, id });
    if (this.news.length > KEPT_NEWS * 2) this.news.splice(0, this.news.length - KEPT_NEWS);
    this.changed("news");
  }

  onLoopBlocked(event) {
    this.note(event.at, `The event loop stood still for ${event.seconds.toFixed(1)} s at ${event.where}; nothing else ran meanwhile`);
  }

  onHandleBlocked(event) {
    this.note(event.at, `The handler of ${event.kind} kept the event loop for ${event.seconds.toFixed(1)} s`, "signal", event.signal_id);
  }

  onHandlerGone(event) {
    this.note(event.at, `There is no handler for ${event.kind} any more, so a post phase cannot run`, "signal", event.signal_id);
  }

  onWorkerRecovered(event) {
    this.note(event.at, `The worker took up what an earlier one left: ${event.runs_failed} runs cut off, ${event.runs_requeued} back in line`);
  }

  onHoldExpired(event) {
    const what = { llm: "A model request", summarizing: "A summary", tool: "A call" }[event.what] ?? event.what;
    this.note(event.at, `${what} of ${event.session} took too long (${Math.round(event.waited)} s) and was given up`, "session", event.session);
  }

  onModelFailed(event) {
    const next = event.retry_in === null ? "" : `; asked again in ${Math.round(event.retry_in)} s`;
    this.note(event.at, `The model failed ${event.session}: ${event.error}${next}`, "session", event.session);
  }

  onWorkAbandoned(event) {
    this.note(event.at, `A call of ${event.session} left work running that nobody waits for`, "session", event.session);
  }

  onSettleFailed(event) {
    this.note(event.at, `A hold of ${event.session} could not be settled: ${event.error}`, "session", event.session);
  }

  // --- sessions ---------------------------------------------------------------------------------------------

  /** Takes a session's document, whole (`/sessions/NAME`) or as a row, as it was at `at`. */
  putSession(document, at) {
    const before = this.sessions.get(document.name);
    this.sessions.set(document.name, { approvals: [], holds: [], queue: [], abandoned: [], ...before, ...document, at, stale: false });
    this.changed("sessions");
  }

  /** An event of a session: what it means at a glance. The document that is asked for meanwhile says the rest. */
  #ofSession(event) {
    const { session: name, at } = event;
    const before = this.sessions.get(name) ?? {
      name, approvals: [], holds: [], queue: [], abandoned: [], queued: 0, waiting_on: { on: "input" }, at,
    };
    const session = { ...before, loaded: true, stale: true };
    this.sessions.set(name, session);
    const on = (what, about = null, left = null, then = null) => {
      session.waiting_on = { on: what, about, since: 0, last_progress: null, left, then };
      session.at = at;
    };
    switch (event.event) {
      case "ModelRequested":
        on(event.purpose === "turn" ? "model" : event.purpose === "summary" ? "summary" : "compaction");
        break;
      case "ModelFailed":
        if (event.retry_in !== null) on("backoff", event.error, event.retry_in, "the model is asked again");
        break;
      case "CallStarted":
        on("tool", `${event.tool} (call ${event.call_id})`);
        break;
      case "ApprovalAsked":
        on("approval", `${event.tool} (call ${event.call_id}, ${event.kind})`, event.seconds, "the call is denied");
        session.approvals = [
          ...before.approvals.filter((each) => each.call_id !== event.call_id),
          { call_id: event.call_id, tool: event.tool, kind: event.kind, arguments: null, since: 0, left: event.seconds },
        ];
        break;
      case "ApprovalAnswered":
      case "CallEnded":
        session.approvals = before.approvals.filter((each) => each.call_id !== event.call_id);
        break;
      case "TurnEnded":
        session.holds = [];
        session.approvals = [];
        on("input");
        break;
      case "WorkAbandoned":
        session.abandoned = [
          ...before.abandoned,
          { work: event.work, call_id: event.call_id, tool: "", what: event.what, number: event.number, about: "", since: at, ended: null },
        ];
        break;
      case "AbandonedEnded":
        session.abandoned = before.abandoned.map((each) => (each.work === event.work ? { ...each, ended: at } : each));
        break;
      case "SessionUnloaded":
        session.loaded = false;
        session.holds = [];
        on("input");
        // What is not in memory is listed only while something of it still needs to be seen.
        if (!session.queued && !session.abandoned.some((each) => each.ended === null)) this.sessions.delete(name);
        break;
    }
    this.changed("sessions");
  }
}
