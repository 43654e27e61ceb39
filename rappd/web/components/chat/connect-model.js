/** Buttons in an answer that connect or download a model, in place of the command that its text names. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";

/** As `agents/providers/offline/responses.py` writes it. */
const HINT = /\n*For open questions connect a model: rappd models (?:connect|use local)\s*$/;

/** The end of a notice that says what helps where Ollama has not the model (`agents/providers/server_kinds.py`). */
const MISSING =
  /`ollama pull ([A-Za-z0-9][\w.:/-]{0,199})`, or choose another model(?: for this (?:conversation|twin))?\.?$/;

const offered = (text) => daemon.operator && daemon.health?.provider?.state === "no model" && HINT.test(text);

/** The text of an answer without what the button says. */
export const withoutHint = (text) => (offered(text) ? text.replace(HINT, "") : text);

/** The button, null where there is nothing to connect. */
export const connectButton = (text) =>
  offered(text)
    ? h("p", { class: "connect-model" }, h("a", { class: "button secondary", href: "#/settings/connect" }, "Connect a model"))
    : null;

/** The download of the model that a notice says Ollama lacks; null for any other notice. `grew()` once it is shown. */
export function downloadOf(notice, grew) {
  const model = daemon.operator && MISSING.exec(notice)?.[1];
  if (!model) return null;
  const place = h("div", {});
  import("../models/model-download.js").then(({ modelDownload }) => {
    fill(place, modelDownload({ model }).element);
    grew();
  });
  return place;
}
