/** The lists of the page Agents: what waits, what is faulty, the owner's own, what came with rappd, apps. */

import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import { agentCard, stateOf } from "./agent-card.js";
import { editPath } from "../../lib/router.js";
import { quarantinedList } from "./quarantined-files.js";
import { rapplicationCard } from "../rapps/rapplication-card.js";

let shippedOpen = false; // as the reader left it

/** The elements of the lists. `tryIt(words)` starts a try. */
export function agentLists({ files, rapps, held = [], drafts = [] }, tryIt) {
  const every = allCards(files);
  const those = (state) => every.filter(({ card }) => stateOf(card) === state);
  const [cartridges, waiting, faulty] = ["cartridge", "waiting", "faulty"].map(those);
  const rest = every.filter(({ card }) => !card.quarantined);
  const own = rest.filter(({ card }) => card.origin !== "shipped");
  const shipped = rest.filter(({ card }) => card.origin === "shipped");
  const quarantined = waiting.length + held.length;
  const cards = (some) =>
    h("ul", { class: "cards" }, some.map(({ file, card }) => agentCard(file, card, { tryIt })));
  return [
    unsaved(drafts),
    quarantined > 0 && [
      h("h2", {}, `Waiting for your approval, ${quarantined}`),
      waiting.length > 0 && cards(waiting),
      quarantinedList(held),
    ],
    faulty.length > 0 && [h("h2", {}, `Not running, ${faulty.length}`), cards(faulty)],
    h("h2", {}, own.length > 0 ? `Yours, ${own.length}` : "Yours"),
    own.length > 0 && cards(own),
    own.length === 0 &&
      h(
        "p",
        { class: "plain" },
        every.length === 0 ? "No agents yet. " : "None of your own yet. ",
        daemon.operator && "Make one, or drop a file that ends in _agent.py or _listener.py here.",
      ),
    cartridges.length > 0 && [h("h2", {}, "Cartridges"), cards(cartridges)],
    rapps.length > 0 && [h("h2", {}, "Apps"), h("ul", { class: "cards" }, rapps.map(rapplicationCard))],
    shipped.length > 0 && folded(`Built in (${shipped.length})`, cards(shipped)),
  ];
}

/** Every card of every file. */
export const allCards = (files) =>
  files.flatMap((file) => (file.cards ?? []).map((card) => ({ file, card })));

/** True for an agent that answers now. */
export const isReady = ({ card }) => stateOf(card) === "ready";

function folded(title, content) {
  const element = h(
    "details",
    { class: "fold shipped", open: shippedOpen },
    h("summary", {}, h("h2", {}, title)),
    content,
  );
  element.addEventListener("toggle", () => (shippedOpen = element.open));
  return element;
}

/** Texts that were written and not saved. */
function unsaved(drafts) {
  return (
    drafts.length > 0 &&
    h(
      "ul",
      { class: "unsaved", role: "list" },
      drafts.map(({ key, file }) =>
        h(
          "li",
          {},
          h("span", { class: "sign warn" }, "! "),
          `${file} has text that is not saved. `,
          h("a", { href: editPath(file, key), "aria-label": `Go on with ${file}` }, "Go on"),
        ),
      ),
    )
  );
}
