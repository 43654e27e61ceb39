/** The one daemon-wide banner: shown while the daemon doesn't answer. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";

/** Keeps `element` (a status region) showing the banner when it is needed. */
export function banner(element) {
  const draw = () => {
    const shown = element.childElementCount > 0;
    if (!daemon.awake && !shown)
      fill(element, h("p", {}, `${daemon.name} isn't answering. Trying again; your text is kept.`));
    if (daemon.awake && shown) fill(element);
  };
  daemon.addEventListener("change", draw);
  draw();
}
