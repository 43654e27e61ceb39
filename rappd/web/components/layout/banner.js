/** The one daemon-wide banner: shown while the daemon doesn't answer. */

import { desk } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";

/** Keeps `element` (a status region) showing the banner when it is needed. */
export function banner(element) {
  const draw = () => {
    const shown = element.childElementCount > 0;
    if (!desk.awake && !shown)
      fill(element, h("p", {}, `${desk.name} isn't answering. Trying again; your text is kept.`));
    if (desk.awake && shown) fill(element);
  };
  desk.addEventListener("change", draw);
  draw();
}
