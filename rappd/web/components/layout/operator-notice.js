/** What stands in place of structural controls when this page may only talk. */

import { desk } from "../../lib/daemon-state.js";
import { h, words } from "../../lib/dom.js";

/** `can` completes the sentence "To …, run `rappd open` on desk and follow its link." */
export function operatorLine(can) {
  return h(
    "p",
    { class: "operator-line" },
    words(`To ${can}, run \`${desk.command}\` on ${desk.name} and follow its link.`),
  );
}
