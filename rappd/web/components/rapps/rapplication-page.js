/** The page of a rapplication, which opens in a sandbox. */

import { h, icon } from "../../lib/dom.js";

/** The page of a rapplication in its sandbox. */
export function rapplicationPage(rapp) {
  return h(
    "section",
    { class: "rapp-page" },
    h(
      "header",
      { class: "rapp-head" },
      h("a", { class: "button quiet", href: "#/agents" }, icon("chevron", "icon back"), "Agents"),
      h("h1", { tabindex: -1 }, rapp.name),
    ),
    isElsewhere(rapp.ui)
      ? h("iframe", {
          title: rapp.name,
          src: rapp.ui,
          sandbox: "allow-scripts allow-forms allow-same-origin",
          referrerpolicy: "no-referrer",
        })
      : h(
          "p",
          { class: "plain" },
          "This page is kept apart from yours. Open yours at ",
          h("code", {}, `http://127.0.0.1:${location.port}`),
          " to use it here.",
        ),
  );
}

/** Only a page of another host name may have its own origin back: cookies do not tell ports apart. */
function isElsewhere(address) {
  try {
    const { protocol, hostname } = new URL(address);
    return protocol === "http:" && hostname === "localhost" && hostname !== location.hostname;
  } catch {
    return false;
  }
}
