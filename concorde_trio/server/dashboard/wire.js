// The page and its server: asking, changing, and following what happens. The law: after a snapshot every event is applied
// once and in order; whenever that cannot be said any more (a reset, another boot, a stream that was cut), a new snapshot
// takes the place of all that was known; and the page always says which of live, lost and logged out it is.

import { readEvents } from "./stream.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
const OUT_OF_SIGHT = 60_000; // a page that nobody sees lets go of its connection; a browser has six for one server

/** What the server answered instead of what was asked for. `status` is 0 when it gave no answer at all. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The path of something, its segments percent-encoded, a dot as well: browsers would resolve it. */
export function pathTo(...segments) {
  return segments.map((each) => encodeURIComponent(each).replaceAll(".", "%2E")).join("/");
}

async function ask(method, path, { body, signal, headers } = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      redirect: "error",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "the server gives no answer");
  }
  if (answer.ok) return answer;
  let detail = answer.statusText;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch {
    // Not one of ours; the status has to do.
  }
  throw new Refused(answer.status, detail);
}

export class Wire {
  /**
   * `hear`: `state(state, more)` with live, connecting, lost or out; `reset(snapshot, rows)`; `event(event)`, for each; and
   * `told(kind)` when the server says that it stops, or is back as another one.
   */
  constructor(hear) {
    this.hear = hear;
    this.state = "connecting";
    this.lastId = null;
    this.boot = null;
    this.skew = 0; // seconds that the server's clock is ahead of ours
    this.heardAt = 0;
    this.#attempts = 0;
    document.addEventListener("visibilitychange", () => this.#sight());
    window.addEventListener("online", () => this.again());
  }

  #attempts;
  #abort = null;
  #timer = 0;
  #hidden = 0;
  #stopping = false;

  /** Seconds since the epoch, by the server's clock. */
  now() {
    return Date.now() / 1000 + this.skew;
  }

  get(path, signal) {
    return this.#guarded(ask("GET", path, { signal })).then((answer) => answer.json());
  }

  /** Asks for a change, and gives what it was answered with. */
  change(path, body) {
    return this.#guarded(ask("POST", path, { body: body ?? {} })).then((answer) => (answer.status === 204 ? null : answer.json()));
  }

  async #guarded(asked) {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof Refused && error.status === 401) this.#out(error.message);
      throw error;
    }
  }

  /** Exchanges the token for a cookie. Refused if it is not the right one. */
  async logIn(token) {
    await ask("POST", "login", { body: { token } });
  }

  async logOut() {
    await ask("POST", "logout", { body: {} });
    this.#out(null);
  }

  #out(why) {
    if (this.state === "out") return;
    this.#stop();
    this.#say("out", { why });
  }

  #say(state, more = {}) {
    this.state = state;
    this.hear.state(state, more);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#abort?.abort();
    this.#abort = null;
  }

  /** Tries now instead of later. */
  again() {
    if (this.state === "lost" || this.state === "connecting") this.start();
  }

  /** Begins anew from a snapshot. */
  anew() {
    this.lastId = null;
    this.start();
  }

  /** Begins to follow, from a snapshot or from where it was. */
  start() {
    this.#stop();
    this.#abort = new AbortController();
    void this.#follow(this.#abort);
  }

  async #follow(abort) {
    if (this.state !== "live") this.#say(this.#attempts === 0 ? "connecting" : "lost", { retrying: true });
    try {
      if (this.lastId === null) await this.#snapshot(abort.signal);
      const answer = await ask("GET", "events", { signal: abort.signal, headers: { "last-event-id": this.lastId, accept: "text/event-stream" } });
      this.#attempts = 0;
      this.#stopping = false;
      this.heardAt = Date.now();
      this.#say("live");
      const heard = (told) => {
        if (abort === this.#abort) this.#heard(told); // what is left of a stream that was given up is not applied
      };
      await readEvents(answer, heard, () => (this.heardAt = Date.now()), abort);
      throw new Refused(0, this.#stopping ? "the server has stopped" : "the connection ended");
    } catch (error) {
      if (abort !== this.#abort) return; // another attempt has taken its place
      if (error instanceof Refused && error.status === 401) this.#out(error.message);
      else this.#later(error);
    }
  }

  async #snapshot(signal) {
    const asked = Date.now();
    const snapshot = await (await ask("GET", "snapshot?parts=signals,runs,sessions&limit=10000", { signal })).json();
    this.skew = snapshot.at - (asked + Date.now()) / 2000;
    const boot = snapshot.id.split("-")[0];
    const [runs, signals] = await Promise.all(["runs?limit=200", "signals?limit=200"].map(async (path) => (await ask("GET", path, { signal })).json()));
    const another = this.boot !== null && this.boot !== boot;
    this.boot = boot;
    this.lastId = snapshot.id;
    this.hear.reset(snapshot, { runs: runs.runs, signals: signals.signals });
    if (another) this.hear.told("restarted");
  }

  #heard({ event, id, data }) {
    if (event === "reset") {
      // Whatever was applied until now may have a gap behind it.
      this.anew();
      return;
    }
    if (id !== undefined && id !== "") this.lastId = id;
    if (event === null) return;
    const document = JSON.parse(data);
    if (event === "end") {
      this.#stopping = document.reason.includes("stop");
      this.hear.told("ending", document.reason);
      return;
    }
    this.hear.event(document);
  }

  #later(error) {
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(this.#attempts, 10));
    this.#attempts += 1;
    this.#say("lost", { why: error.message, at: Date.now() + wait });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.start(), wait);
  }

  #sight() {
    clearTimeout(this.#hidden);
    if (document.hidden) {
      this.#hidden = setTimeout(() => {
        if (this.state === "live") {
          this.#stop();
          this.#say("connecting", { asleep: true });
        }
      }, OUT_OF_SIGHT);
    } else {
      this.again();
    }
  }
}
