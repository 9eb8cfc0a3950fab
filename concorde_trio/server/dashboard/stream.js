// Reads server-sent events from a fetch, which, unlike EventSource, tells a refusal from a lost connection. The law: every
// event is given whole and in order, and a stream that has been silent for too long counts as lost.

const SILENCE = 45_000; // milliseconds; the server says something every 15 seconds

/**
 * Gives each event of an open answer to `heard({event, id, data})`, until it ends. `alive()` is called with every piece.
 * Resolves at the end of the stream; rejects when the connection is lost or silent.
 */
export async function readEvents(answer, heard, alive, abort) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(new Error("the server has said nothing for a while")), SILENCE);
  };
  const parser = new Parser(heard);
  try {
    for (;;) {
      wait();
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      parser.feed(value);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Lines to events, as the standard says, comments left out. */
export class Parser {
  constructor(heard) {
    this.heard = heard;
    this.rest = "";
    this.id = undefined;
    this.#begin();
  }

  #begin() {
    this.name = "message";
    this.data = [];
  }

  feed(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const each of lines) this.#line(each.endsWith("\r") ? each.slice(0, -1) : each);
  }

  #line(text) {
    if (text === "") {
      // An id alone is no event, but it is where to go on from.
      if (this.data.length > 0 || this.id !== undefined) {
        this.heard({ event: this.data.length > 0 ? this.name : null, id: this.id, data: this.data.join("\n") });
      }
      this.id = undefined;
      this.#begin();
      return;
    }
    if (text.startsWith(":")) return;
    const colon = text.indexOf(":");
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + (text[colon + 1] === " " ? 2 : 1));
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
  }
}
