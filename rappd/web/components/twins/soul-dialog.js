/** A twin's soul: the text in force, and every text before it. */

import { formDialog, field } from "../ui/form-dialog.js";
import { clock, timeOrDay } from "../../lib/format.js";
import { actionButton, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { twins } from "./twins-state.js";

/** Fetches the soul and opens the dialog. Raises `Problem`. `changed()` after each change. */
export async function openSoul({ key, name }, changed = () => twins.touch()) {
  const { soul, history } = await operations.twins.soul({ twin: key });
  const text = field("Soul", { tag: "textarea", rows: 12, value: soul });
  const reason = field("Why (may be left empty)", { maxlength: 120 });
  const dialog = formDialog({
    title: `${name}'s soul`,
    verb: "Put in force",
    wide: true,
    fields: [text, reason],
    after: earlier(history),
    run: async () => {
      const given = { soul: text.input.value, reason: reason.input.value };
      const answer = await operations.twins.editSoul({ twin: key, ...given });
      changed();
      toast(answer.message, {
        actions: answer.kept_as
          ? [{ label: "Undo", run: () => orShowFailure(() => restore(answer.kept_as)) }]
          : [],
      });
    },
  });
  text.input.setSelectionRange(0, 0);
  text.input.scrollTop = 0;

  async function restore(number) {
    const { message } = await operations.twins.restoreSoul({ twin: key, number });
    changed();
    toast(message);
  }

  function earlier(kept) {
    if (!kept.length) return h("p", { class: "soft" }, "It has had this soul only.");
    const errorPlace = h("div", {});
    return h(
      "details",
      { class: "fold" },
      h("summary", {}, `${kept.length} before this one`),
      h(
        "ol",
        { class: "rows", role: "list" },
        kept.toReversed().map(({ number, at, reason: why }) =>
          h(
            "li",
            { class: "line-row" },
            h(
              "span",
              {},
              `${number}`,
              h("span", { class: "soft" }, ` replaced ${when(at)}${why ? `, ${why}` : ""}`),
            ),
            actionButton(
              "Restore",
              async () => (await attemptIn(errorPlace, () => restore(number))) && dialog.close(),
              "quiet",
              { "aria-label": `Put soul ${number} in force` },
            ),
          ),
        ),
      ),
      errorPlace,
    );
  }
}

/** "20 Nov 14:02", "14:02" today */
const when = (at) => (timeOrDay(at) === clock(at) ? clock(at) : `${timeOrDay(at)} ${clock(at)}`);
