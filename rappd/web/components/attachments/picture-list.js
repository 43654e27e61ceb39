/** Pictures beside what was said, small; a press shows one large. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { openDialog } from "../ui/dialog.js";
import { picturesOf } from "./picture-store.js";
import { urlOf } from "./picture-file.js";

/** The pictures of a turn; `grew()` when one has taken its place. */
export function sentPictures(turn, grew) {
  const list = h("ul", { class: "sent-pictures", "aria-label": "Pictures" }, turn.pictures.map(missing("…")));
  picturesOf(turn).then((found) => {
    fill(list, found ? found.map((picture) => item(picture, grew)) : turn.pictures.map(missing(" is not kept in this browser.")));
    grew();
  });
  return list;
}

const nameOf = ({ name }) => name || "Picture";

const missing = (words) => (picture) => h("li", { class: "soft" }, `${nameOf(picture)}${words}`);

function item(picture, grew) {
  const image = h("img", { src: urlOf(picture), alt: nameOf(picture), onload: grew });
  return h(
    "li",
    {},
    actionButton(
      image,
      () =>
        openDialog({
          title: nameOf(picture),
          wide: true,
          build: () => h("div", { class: "dialog-body large-picture" }, h("img", { src: urlOf(picture), alt: nameOf(picture) })),
        }),
      "sent-picture",
      { "aria-label": `Show ${nameOf(picture)} large` },
    ),
  );
}
