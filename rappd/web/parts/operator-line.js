/** What stands in place of structural controls when this page may only talk. */

import { desk } from "./desk.js";
import { h, words } from "./dom.js";

/** `can` completes the sentence "To …, run `rappd open` on this computer." */
export function operatorLine(can) {
  return h("p", { class: "operator-line" }, words(`To ${can}, run \`${desk.command}\` on this computer and follow its link.`));
}
