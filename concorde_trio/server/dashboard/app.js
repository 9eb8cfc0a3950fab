// Ties it together: who is logged in, which view is shown, what is looked at, and when things are painted. The law: events
// only change the model; what is shown is made anew at most four times a second, in a frame; a hand that scrolls or moves is
// followed in the next frame; and what is not shown costs nothing.

import { Actions, tell } from "./ask.js";
import { Card } from "./chain.js";
import { Detail } from "./detail.js";
import { fill, h, mark, part, say, tick } from "./dom.js";
import { Lanes } from "./lanes.js";
import { lockList, runList, sessionList, signalList } from "./lists.js";
import { Model } from "./model.js";
import { load, putSignals } from "./snapshot.js";
import { Stuck, figures } from "./stuck.js";
import { moment, span } from "./text.js";
import { Wire, pathTo } from "./wire.js";

const LISTS_EVERY = 250; // milliseconds
const SPEAK_EVERY = 15_000;
const ASK_EVERY = 1_000; // milliseconds between two looks at what sessions in sight do
const ASK_MOST = 6; // of them at once
const HOLDS_EVERY = 5; // seconds after which the time left of a hold is asked for again, since progress moves it
const SIGNALS_EVERY = 2_000;
const ROOM = 5_000; // runs in the lock table, of which a snapshot has twice as many

const model = new Model();
const wire = new Wire({ state: showState, reset, event: (event) => model.take(event), told });
const actions = new Actions(wire, () => void detail.ask(), (text) => showBanner(text, "bad", 12_000));
const shown = {
  run: (run) => run !== undefined && look("run", run.id),
  session: (name) => look("session", name),
  signal: (signal) => look("signal", signal.id),
  lock: (lock) => look("lock", lock.key),
  thing: (type, id) => look(type, id),
  nothing: () => look(null),
  pointed: (run, rectangle) => {
    // What stands in the panel need not stand beside the run as well.
    const there = detail.on?.type === "run" && detail.on.id === run.id;
    if (there) card.hide();
    lanes.light(there ? model.lines.chain(run) : card.show(model, run, () => wire.now(), rectangle, part("detail").getBoundingClientRect().left + 10));
  },
  left: () => card.hideSoon(),
};
const card = new Card(part("card"));
card.gone = () => lanes.light(looked());
const detail = new Detail(part("detail"), model, wire, actions, shown);
const stuck = new Stuck({ counts: part("counts"), stuck: part("stuck") }, model, wire, actions, shown);

/** The chain of the run that stands in the panel, null if none does. */
function looked() {
  const run = detail.on?.type === "run" ? model.runs.get(detail.on.id) : undefined;
  return run === undefined ? null : model.lines.chain(run);
}

// --- views ----------------------------------------------------------------------------------------------------

const VIEWS = [["lanes", "Lanes"], ["runs", "Runs"], ["locks", "Locks"], ["sessions", "Sessions"], ["signals", "Signals"]];
const tabs = {};
const panels = {};
for (const [name, title] of VIEWS) {
  const number = h("span", { class: "number" });
  tabs[name] = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": "false", tabindex: "-1" }, title, number);
  tabs[name].number = number;
  tabs[name].addEventListener("click", () => show(name));
  panels[name] = h("section", { class: "panel", role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, hidden: true });
}
part("tabs").append(...Object.values(tabs));
part("panels").append(...Object.values(panels));
part("tabs").addEventListener("keydown", (event) => {
  const here = VIEWS.findIndex(([name]) => name === view);
  const there = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: VIEWS.length - 1 }[event.key];
  if (there === undefined) return;
  event.preventDefault();
  const [name] = VIEWS[(there + VIEWS.length) % VIEWS.length];
  show(name);
  tabs[name].focus();
});

const lanes = new Lanes(panels.lanes, model, wire, shown);
const views = {
  lanes,
  runs: runList(panels.runs, model, wire, shown.run),
  locks: lockList(panels.locks, model, wire, shown.lock),
  sessions: sessionList(panels.sessions, model, wire, (session) => shown.session(session.name)),
  signals: signalList(panels.signals, model, wire, shown.signal),
};
let view = null;

function show(name) {
  if (view === name) return;
  view = name;
  for (const [each] of VIEWS) {
    mark(tabs[each], "aria-selected", each === name ? "true" : "false");
    tabs[each].tabIndex = each === name ? 0 : -1;
    panels[each].hidden = each !== name;
  }
  card.hide();
  views[name].refresh();
  if (name === "signals") void askSignals();
  note();
}

function look(type, id) {
  if (type === null) detail.close();
  else detail.open(type, id);
  card.hide();
  if (type === "run" && view === "runs") views.runs.grid.select(id);
  if (type !== null && matchMedia("(max-width: 1000px)").matches) part("detail").scrollIntoView({ block: "start" });
  note();
}

// --- where we are, in the address, so that it can be come back to and passed on ---------------------------------

function note() {
  const on = detail.on === null ? "" : `/${detail.on.type}/${encodeURIComponent(detail.on.id)}`;
  history.replaceState(null, "", `${location.pathname}${location.search}#${view}${on}`);
}

/** Goes where the address says; `lanes` if it says nothing that is known. */
function goTo(fragment) {
  const [name, type, id] = fragment.replace(/^#/, "").split("/");
  show(VIEWS.some(([each]) => each === name) ? name : "lanes");
  try {
    if (["run", "session", "signal", "lock"].includes(type) && id) look(type, decodeURIComponent(id));
  } catch {
    // Not one of our addresses.
  }
}

// --- when things are painted ------------------------------------------------------------------------------------

let dirty = false;
let listedAt = 0;
let asked = 0;
model.listen(() => {
  dirty = true;
  frameSoon();
});

function frameSoon() {
  if (asked === 0 && !document.hidden) asked = requestAnimationFrame(frame);
}

function frame(at) {
  asked = 0;
  if (view === null) return;
  if (dirty && at - listedAt >= LISTS_EVERY) {
    dirty = false;
    listedAt = at;
    views[view].refresh();
    if (card.run === null) lanes.light(looked());
    stuck.refresh();
    detail.refresh();
    const numbers = figures(model);
    say(tabs.runs.number, numbers.running + numbers.waiting + numbers.held || "");
    say(tabs.sessions.number, numbers.sessions || "");
    say(tabs.locks.number, model.lines.lines.size || "");
  } else if (dirty) {
    setTimeout(frameSoon, LISTS_EVERY - (at - listedAt) + 1);
  }
}

// Times go on though nothing happens. A lane is drawn often enough to move by a pixel or so, not more.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let drawnAt = 0;
let tickedAt = 0;
setInterval(() => {
  if (document.hidden || view === null || wire.state === "out") return;
  const now = performance.now();
  const pace = calm.matches ? 1000 : Math.min(1000, Math.max(100, lanes.window));
  if (view === "lanes" && wire.state === "live" && now - drawnAt >= pace) {
    drawnAt = now;
    lanes.paintSoon();
  }
  if (now - tickedAt >= 1000) {
    tickedAt = now;
    model.sweepLanes(wire.now() - lanes.window);
    // There is room again for what the snapshot left out.
    if (model.more > 0 && model.live.size < ROOM && wire.state === "live") wire.anew();
    dirty = true;
    frameSoon();
    if (!part("card").hidden) tick(part("card"));
    if (wire.state === "lost") showLost();
  }
}, 100);

// What happens is said to who listens, not more often than can be listened to.
let spokenAt = 0;
let spoken = "";
setInterval(() => {
  const now = Date.now();
  if (wire.state === "live" && stuck.summary !== undefined && stuck.summary !== spoken && now - spokenAt >= SPEAK_EVERY) {
    spoken = stuck.summary;
    spokenAt = now;
    tell(spoken);
  }
}, 1000);

// --- what only the server knows: sessions in sight, payloads -----------------------------------------------------

const asking = new Set();
setInterval(() => {
  if (document.hidden || wire.state !== "live") return;
  const now = wire.now();
  const wanted = new Set();
  if (detail.on?.type === "session") wanted.add(detail.on.id);
  const rows = view === "lanes" ? lanes.grid.inSight() : view === "sessions" ? views.sessions.grid.inSight() : [];
  for (const row of rows) wanted.add(row.name);
  for (const session of model.sessions.values()) {
    // A question is answered by what it is about, which no event says.
    if (session.approvals.some((each) => each.arguments === null)) wanted.add(session.name);
  }
  for (const name of wanted) {
    const session = model.sessions.get(name);
    if (session === undefined || asking.has(name) || asking.size >= ASK_MOST) continue;
    const moves = session.loaded && session.waiting_on?.left !== null && session.waiting_on?.left !== undefined;
    if (session.stale || (moves && now - session.at > HOLDS_EVERY)) void askSession(name);
  }
}, ASK_EVERY);

async function askSession(name) {
  asking.add(name);
  try {
    const at = wire.now();
    model.putSession(await wire.get(pathTo("sessions", name)), (at + wire.now()) / 2);
  } catch {
    const session = model.sessions.get(name);
    if (session !== undefined) session.stale = false; // not again before something happens to it
  } finally {
    asking.delete(name);
  }
}

let signalsAt = 0;
async function askSignals() {
  if (wire.state !== "live" || Date.now() - signalsAt < SIGNALS_EVERY) return;
  signalsAt = Date.now();
  try {
    putSignals(model, (await wire.get("signals?limit=100")).signals.toReversed());
  } catch {
    // It is asked for again.
  }
}
setInterval(() => {
  if (view === "signals" && !document.hidden && [...model.signals.values()].slice(-100).some((signal) => signal.payload === undefined)) void askSignals();
}, SIGNALS_EVERY);

// --- the connection, and who is logged in -------------------------------------------------------------------------

let lost = null;
let bannerTimer = 0;

function showBanner(text, kind, milliseconds, ...more) {
  const banner = part("banner");
  clearTimeout(bannerTimer);
  mark(banner, "data-kind", kind);
  if (banner.firstChild?.textContent !== text) fill(banner, h("span", {}, text), more);
  banner.hidden = false;
  if (milliseconds) bannerTimer = setTimeout(() => (banner.hidden = true), milliseconds);
}

function showState(state, more) {
  const link = part("link");
  mark(link, "data-state", state);
  say(part("link-text"), { live: "Live", connecting: more.asleep ? "Asleep" : "Connecting", lost: "Not connected", out: "Logged out" }[state]);
  part("logout").hidden = state === "out";
  mark(document.documentElement, "data-link", state);
  if (state === "lost") {
    lost = more.retrying ? { ...lost, at: 0 } : more;
    showLost();
  } else if (state === "live") {
    if (lost !== null) {
      tell("Connected again.");
      if (part("banner").dataset.kind === "bad") part("banner").hidden = true;
    }
    lost = null;
  } else if (state === "out") {
    showLogin(more.why);
  }
}

function showLost() {
  if (lost === null) return;
  const seconds = lost.at > 0 ? Math.ceil((lost.at - Date.now()) / 1000) : 0;
  const as = wire.heardAt > 0 ? ` What you see is how it was at ${moment(wire.heardAt / 1000)}, ${span((Date.now() - wire.heardAt) / 1000)} ago.` : "";
  const banner = part("banner");
  if (banner.dataset.lost === undefined || banner.hidden) {
    const again = h("button", { type: "button" }, "Try now");
    again.addEventListener("click", () => wire.again());
    showBanner("", "bad", 0, again);
    banner.dataset.lost = "true";
  }
  say(banner.firstChild, `Not connected: ${lost.why ?? "the server gives no answer"}.${as} ${seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again."}`);
}

function told(kind, reason) {
  if (kind === "restarted") {
    delete part("banner").dataset.lost;
    showBanner("The server was started anew. Everything here has been read again.", "good", 10_000);
    tell("The server was started anew. Everything here has been read again.");
  } else if (kind === "ending") {
    tell(`The server ended the connection: ${reason}.`);
  }
}

function reset(snapshot, rows) {
  load(model, snapshot, rows);
  delete part("banner").dataset.lost;
  part("login").hidden = true;
  part("board").hidden = false;
  if (view === null) goTo(location.hash);
  listedAt = 0;
  if (detail.on !== null) void detail.ask();
}

function showLogin(why) {
  model.clear();
  wire.lastId = wire.boot = null;
  detail.close();
  card.hide();
  fill(part("card"));
  fill(part("said"));
  stuck.clear();
  for (const each of Object.values(views)) each.grid.clear();
  view = null;
  part("board").hidden = true;
  part("banner").hidden = true;
  part("login").hidden = false;
  say(part("login-error"), why === null || !wasIn ? "" : "You were logged out: the server was started with another token, or the time of the login is over.");
  part("token").focus();
}

let wasIn = false;
part("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void logIn(part("token").value.trim());
});

async function logIn(token) {
  const error = part("login-error");
  say(error, "");
  try {
    await wire.logIn(token);
  } catch (problem) {
    say(error, problem.status === 403 ? "That is not the operator token of this server. It is in the link printed at the last start, after #token=." : `Not logged in: ${problem.message}.`);
    part("token").select();
    return;
  }
  part("token").value = "";
  part("login").hidden = true;
  wire.state = "connecting";
  wire.start();
}

part("logout").addEventListener("click", () => {
  wasIn = false;
  wire.logOut().catch((error) => showBanner(`Not logged out: ${error.message}`, "bad", 12_000));
});

// --- theme --------------------------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];
function showTheme() {
  say(part("theme"), `Theme: ${document.documentElement.dataset.theme ?? "system"}`);
}
part("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("concorde-trio-theme", next);
  } catch {
    // Then it lasts as long as the page.
  }
  showTheme();
});
showTheme();

// --- begin --------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !part("card").hidden) card.hide();
});
addEventListener("hashchange", () => view !== null && goTo(location.hash));
model.listen((what) => {
  if (what === "all" && wire.state !== "out") wasIn = true;
});
say(part("host"), location.host);

/** The token of the printed link is taken out of the address at once, so that no history keeps it. */
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given !== null) {
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  void logIn(given).then(() => {
    if (wire.state !== "live" && part("login-error").textContent !== "") {
      wire.state = "out";
      mark(part("link"), "data-state", "out");
      say(part("link-text"), "Logged out");
      part("login").hidden = false;
    }
  });
} else {
  wire.start();
}
