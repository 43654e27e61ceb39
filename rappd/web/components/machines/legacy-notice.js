/** A notice while the legacy listener is open: to whom, and a button that closes it. */

import { joinNames, stripControl } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";
import { legacy } from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

/** An element that is empty while the listener is closed. `look()` asks anew. */
export function legacyNotice() {
  const element = h("div", { class: "legacy" });
  const errorPlace = h("div", {});
  let drawn = "";
  const draw = ({ open = false, addresses = [], listening = [] } = {}) => {
    const text = JSON.stringify([open, addresses, listening]);
    if (text === drawn) return;
    drawn = text;
    fill(
      element,
      open && [
        h(
          "p",
          {},
          h("span", { class: "sign warn" }, "! "),
          `The legacy listener is open to ${joinNames(addresses.map(stripControl), 6)}. Its traffic is not protected.`,
        ),
        h(
          "button",
          { type: "button", class: "secondary", "aria-label": "Close the legacy listener", onclick: close },
          "Close",
        ),
        errorPlace,
      ],
    );
  };
  const close = () =>
    attemptIn(errorPlace, async () => {
      draw((await legacy.close()).legacy);
      toast("The legacy listener is closed.");
    });
  const look = async () => {
    try {
      draw((await legacy.show()).legacy);
    } catch (found) {
      if (found.code === undefined) throw found; // the list says what is wrong
    }
  };
  return { element, look };
}
