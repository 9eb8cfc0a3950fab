// What an operator can do, each with a question first that says what will come of it. The law: nothing is changed before a
// person has said yes to exactly this; the answer that is at hand is the harmless one; and what came of it is said.

import { fill, h, part, say } from "./dom.js";
import { line, sessionName } from "./text.js";
import { pathTo } from "./wire.js";

/** Tells who listens to the page, and who looks at it, that something happened. */
export function tell(text) {
  const place = part("said");
  say(place, "");
  requestAnimationFrame(() => say(place, text)); // said again even if it is the same
}

/** A question before a change. Resolves to whether it was said yes to. */
function question({ title, text, more, yes, no, danger = true }) {
  const dialog = part("ask");
  const accept = h("button", { type: "submit", value: "yes", class: danger ? "danger" : "main" }, yes);
  const refuse = h("button", { type: "submit", value: "no", autofocus: true }, no);
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "ask-title", class: "other" }, title),
    h("p", { id: "ask-text", class: "other" }, text),
    more ? h("pre", { class: "other", tabindex: "0" }, more) : null,
    h("div", { class: "acts" }, refuse, accept),
  );
  fill(dialog, form);
  const before = document.activeElement;
  dialog.showModal();
  refuse.focus();
  return new Promise((resolve) => {
    // All in one go: a close is told of later, when the next question may be open already.
    const finish = (answer) => {
      dialog.removeEventListener("cancel", cancelled);
      dialog.removeEventListener("close", closed);
      dialog.close();
      fill(dialog);
      if (before?.isConnected) before.focus({ preventScroll: true });
      resolve(answer === "yes");
    };
    const cancelled = (event) => {
      event.preventDefault();
      finish("no");
    };
    const closed = () => {
      if (!dialog.open) finish("no");
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault(); // the policy of the page lets no form be sent
      finish(event.submitter?.value ?? "no");
    });
    dialog.addEventListener("cancel", cancelled);
    dialog.addEventListener("close", closed);
  });
}

export class Actions {
  /** `wire` carries them out; `done()` hears when something may have changed; `failed(text)` what could not be done. */
  constructor(wire, done, failed) {
    this.wire = wire;
    this.done = done;
    this.failed = failed;
  }

  async #do(asked, path, body, said) {
    if (!(await question(asked))) return;
    try {
      const answer = await this.wire.change(path, body);
      tell(typeof said === "function" ? said(answer) : said);
      this.done();
    } catch (error) {
      this.failed(`${asked.title.replace(/\?$/, "")}: ${error.message}`);
    }
  }

  cancelRun(run, waiting) {
    return this.#do(
      {
        title: `Cancel this run of ${sessionName(run.session)}?`,
        text: run.state === "pending"
          ? "It has not started. It leaves the queue, and its signal fails."
          : `It is stopped, and its signal fails. Its locks are free once it has really ended${waiting > 0 ? `; ${waiting} wait for it` : ""}.`,
        yes: "Cancel the run",
        no: "Leave it",
      },
      pathTo("runs", run.id, "cancel"),
      undefined,
      "The run's end was asked for.",
    );
  }

  cancelSignal(signal) {
    return this.#do(
      {
        title: `Cancel the signal ${line(signal.kind, 60)}${signal.seq === null ? "" : ` #${signal.seq}`}?`,
        text: "All its runs that have not ended are cancelled, and the signal fails. Its post phase, if it has one, still runs.",
        yes: "Cancel the signal",
        no: "Leave it",
      },
      pathTo("signals", signal.id, "cancel"),
      undefined,
      "The signal's end was asked for.",
    );
  }

  retry(signal) {
    return this.#do(
      {
        title: `Emit ${line(signal.kind, 60)} again?`,
        text: "A new signal with the same payload takes its place at the end of the queue. What the first one did is not undone.",
        yes: "Emit it again",
        no: "Leave it",
        danger: false,
      },
      pathTo("signals", signal.id, "retry"),
      undefined,
      "It was emitted again.",
    );
  }

  interrupt(session) {
    const queued = session.queued > 0 ? ` What is queued (${session.queued}) is kept.` : "";
    return this.#do(
      {
        title: `Interrupt ${sessionName(session.name)}?`,
        text: `The turn that it is taking ends: the model is not listened to any more, and its tools are stopped. Results that are there are kept.${queued}`,
        yes: "Interrupt",
        no: "Let it work",
      },
      pathTo("sessions", session.name, "interrupt"),
      undefined,
      (answer) => (answer.interrupted ? "The turn was interrupted." : "No turn was being taken; nothing was interrupted."),
    );
  }

  resume(session) {
    return this.#do(
      {
        title: `Let ${sessionName(session.name)} go on?`,
        text: "What an interrupt held in its queue runs now.",
        yes: "Go on",
        no: "Leave it",
        danger: false,
      },
      pathTo("sessions", session.name, "resume"),
      undefined,
      "What was held runs.",
    );
  }

  approve(session, approval, allow) {
    return this.#do(
      {
        title: `${allow ? "Allow" : "Deny"} this call of ${line(approval.tool, 60)} by ${sessionName(session)}?`,
        text: allow
          ? "It runs now with these arguments. The answer is for this call alone."
          : "It is not run, and the agent is told that it was denied. The answer is for this call alone.",
        more: approval.arguments === null ? null : approval.shown,
        yes: allow ? "Allow the call" : "Deny the call",
        no: "Not yet",
        danger: !allow,
      },
      pathTo("sessions", session, "approvals", approval.call_id),
      { allow },
      allow ? "The call was allowed." : "The call was denied.",
    );
  }
}
