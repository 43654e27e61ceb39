/** Notice in place of controls when the browser has no operator session. */

import { daemon } from "../../lib/daemon-state.js";
import { h, withCode } from "../../lib/dom.js";

/** `can` completes the sentence "To …, run `rappd open` on this machine and follow its link." */
export function operatorNotice(can) {
  return h(
    "p",
    { class: "operator-line" },
    withCode(`To ${can}, run \`${daemon.command}\` on ${daemon.name} and follow its link.`),
  );
}
