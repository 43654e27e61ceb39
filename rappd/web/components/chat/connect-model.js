/** Where an answer without a model ends with how to connect one: a button in place of the terminal's command. */

import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";

/** As `agents/providers/offline/responses.py` writes it. */
const HINT = /\n*For open questions connect a model: rappd models (?:connect|use local)\s*$/;

const offered = (text) => daemon.operator && daemon.health?.provider?.state === "no model" && HINT.test(text);

/** The text of an answer without what the button says. */
export const withoutHint = (text) => (offered(text) ? text.replace(HINT, "") : text);

/** The button, null where there is nothing to connect. */
export const connectButton = (text) =>
  offered(text)
    ? h("p", { class: "connect-model" }, h("a", { class: "button secondary", href: "#/settings/connect" }, "Connect a model"))
    : null;
