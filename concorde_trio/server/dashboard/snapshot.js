// From the server's documents to the model. The law: a snapshot takes the place of all that was known; the rows of what is
// over, which are read after it, add only what was over before it, for events tell the rest.

function signalFields(row) {
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    state: row.state ?? (row.phase ? "processing" : "pending"),
    phase: row.phase ?? null,
    error: row.error ?? null,
    interrupted: row.interrupted ?? false,
    emittedAt: row.emitted_at,
    claimedAt: row.claimed_at ?? undefined,
    settledAt: row.settled_at ?? null,
    postAt: row.post_started_at ?? undefined,
    holds: row.holds,
    payload: "payload" in row ? preview(row.payload) : undefined,
  };
}

/** Enough of a payload for a row of a list; all of it is asked for when somebody looks at it. */
export function preview(payload) {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** Puts rows of `/signals` into the model, settled or not. */
export function putSignals(model, rows, before = Infinity) {
  for (const row of rows) {
    if (row.settled_at === null || row.settled_at <= before) {
      const known = model.signals.get(row.id);
      // An event may have told more of it since.
      if (known === undefined || known.state === row.state) model.putSignal(signalFields(row));
      else model.putSignal({ id: row.id, seq: row.seq, emittedAt: row.emitted_at, payload: preview(row.payload) });
    }
  }
}

/** Makes the model what a snapshot says. `rows`: the last runs and signals, newest first, for what is over. */
export function load(model, snapshot, rows) {
  model.clear();
  model.worker = {
    status: snapshot.worker.stop_mode === null ? snapshot.worker.status : `stopping (${snapshot.worker.stop_mode})`,
    error: snapshot.worker.last_error,
  };
  model.more = snapshot.more_runs ?? 0;
  const past = rows.runs.filter((row) => row.ended_at !== null && row.ended_at <= snapshot.at);
  const held = new Set(snapshot.runs.filter((row) => row.state === "held").map((row) => row.id));
  putSignals(model, rows.signals.toReversed(), snapshot.at);
  for (const row of [...(snapshot.pending ?? []), ...snapshot.signals]) model.putSignal(signalFields(row));
  for (const row of past.toReversed()) {
    if (held.has(row.id)) continue;
    model.putRun({
      id: row.id, signal: row.signal_id, position: row.position, session: row.session, resources: row.resources,
      state: row.state, queuedAt: row.queued_at, startedAt: row.started_at, endedAt: row.ended_at, error: row.error,
    });
    const signal = model.signals.get(row.signal_id);
    if (signal?.settledAt && signal.holds) model.runs.get(row.id).releasedAt = signal.settledAt;
  }
  for (const row of snapshot.runs.toSorted((one, other) => one.position - other.position)) {
    model.putRun({
      id: row.id, signal: row.signal_id, position: row.position, session: row.session, resources: row.resources,
      state: row.outcome ?? (row.state === "running" ? "running" : "pending"), held: row.state === "held",
      stopping: row.stopping_since, timeLimit: row.time_limit, queuedAt: row.queued_at, startedAt: row.started_at, endedAt: row.ended_at,
    });
  }
  for (const row of snapshot.sessions) model.putSession({ loaded: true, ...row }, snapshot.at);
  // What went wrong before is no event any more; the last failures are.
  for (const signal of [...model.signals.values()].filter((each) => each.state === "failed").sort((one, other) => one.settledAt - other.settledAt)) {
    model.note(signal.settledAt, `${signal.kind} failed: ${signal.error}`, "signal", signal.id);
  }
  model.changed("all");
}
