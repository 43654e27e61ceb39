/** Parser of server-sent events in a `fetch` body (EventSource can neither POST nor send headers). */

/** Yields `{id, event, data}` for each complete event; a piece cut off at the end is dropped. */
export async function* sse(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  let fields = blank();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      // A lone CR at the end may be half of a CRLF: it waits for the next piece.
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line !== "") {
          read(line, fields);
          continue;
        }
        if (fields.id !== null) id = fields.id;
        if (fields.data.length) yield { id, event: fields.event, data: fields.data.join("\n") };
        fields = blank();
      }
    }
  } finally {
    reader.cancel().catch(() => undefined); // already broken: nothing is left to give back
  }
}

function blank() {
  return { id: null, event: "message", data: [] };
}

function read(line, fields) {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") fields.data.push(value);
  else if (name === "id") fields.id = value;
  else if (name === "event") fields.event = value;
}
