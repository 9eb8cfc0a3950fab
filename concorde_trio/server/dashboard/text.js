// Words for what is shown. The law: a name or payload may hold any character and must not look like something else, so
// characters that are invisible or turn the direction of others are spelled out.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function spelled(character) {
  return `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A text with nothing invisible in it, cut to `most` characters. Line breaks and tabs stay. */
export function seen(text, most = Infinity) {
  const whole = String(text);
  const kept = whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
  return kept.replace(UNSEEN, spelled);
}

/** The same on one line. */
export function line(text, most = 200) {
  return seen(String(text).slice(0, most * 4).replace(/[\s]+/g, " "), most);
}

/** Seconds as a person says them: 0.4 s, 12 s, 3 m 05 s, 2 h 10 m, 3 d 4 h. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  if (!Number.isFinite(seconds)) return "no limit";
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const pad = (number) => String(number).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** The same as a clock would show it, where there is little room: 0:12, 4:53, 2:10:00. */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const pad = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return whole < 3600 ? `${minutes}:${pad(whole % 60)}` : `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
}

/** A moment (seconds since the epoch) as the time of day here, with the date if it was not today. */
export function moment(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at * 1000);
  const pad = (number) => String(number).padStart(2, "0");
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const day = (each) => `${each.getFullYear()}-${pad(each.getMonth() + 1)}-${pad(each.getDate())}`;
  return day(date) === day(new Date()) ? time : `${day(date)} ${time}`;
}

/** `3 runs`, `1 run`. */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** An id, short enough to tell apart from others beside it. */
export function brief(id) {
  const [start, ...rest] = String(id).split("-");
  const tail = rest.length > 0 ? `\u2011${rest.at(-1)}` : ""; // a hyphen at which no line is broken
  return line(start.length > 8 ? `${start.slice(-6)}${tail}` : id, 20);
}

const FRESH = /^run_[0-9A-Za-z-]{12,}$/;

/** A run by its session and its id; a fresh session is named by its run already. */
export function runName(run, most = 40) {
  return FRESH.test(run.session) ? sessionName(run.session) : `${sessionName(run.session, most)} · ${brief(run.id)}`;
}

/** A session's name; the fresh one of a run says that it is one. */
export function sessionName(name, most = 60) {
  return FRESH.test(name) ? `fresh session ${brief(name.slice(4))}` : line(name, most);
}

/** A JSON value on one line. */
export function inline(value, most = 160) {
  if (typeof value === "string") return line(value, most);
  if (value === undefined) return "";
  return line(JSON.stringify(value), most);
}
