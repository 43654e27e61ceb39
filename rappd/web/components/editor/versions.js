/** Earlier versions of an agent file: seen beside the present text, and taken into the editor. */

import { actionButton, h } from "../../lib/dom.js";
import { clock, onDay } from "../../lib/format.js";
import { lineDiff } from "../../lib/line-diff.js";
import * as operations from "../../lib/operations.js";
import { openDialog } from "../ui/dialog.js";
import { sides } from "../ui/diff-view.js";
import { attemptIn } from "../ui/problem.js";

const REASONS = { edited: "before a change here", imported: "before a file replaced it", new: "at first" };

/** Opens the list of versions of `file`; `present()` is the text in the editor, `take(text)` puts another there. */
export async function openVersions({ twin, file, readOnly, present, take }) {
  const which = { twin, filename: file };
  const { generations } = await operations.agents.generations(which);
  openDialog({
    title: `Earlier versions of ${file}`,
    wide: true,
    build: (close) => {
      const errorPlace = h("div", {});
      const shown = h("div", {});
      const look = (number) => async () => {
        await attemptIn(errorPlace, async () => {
          const { source } = await operations.agents.generations({ ...which, generation: number });
          shown.replaceChildren(...comparison(number, source, close));
          shown.querySelector("button, [tabindex]")?.focus();
        });
      };
      const comparison = (number, source, leave) => [
        h("h3", {}, `Version ${number}, and the text in the editor`),
        source === present() ? h("p", {}, "They are the same.") : sides(lineDiff(source, present()), file),
        ...(readOnly
          ? []
          : [
              h("p", { class: "soft" }, "It goes into the editor; nothing changes before you save."),
              actionButton(`Take version ${number}`, () => (take(source), leave()), "primary"),
            ]),
      ];
      return h(
        "div",
        { class: "dialog-body" },
        generations.length === 0
          ? h("p", {}, "There is none yet. Each time you save, the version before is kept here.")
          : h(
              "ul",
              { class: "file-versions", role: "list" },
              [...generations].reverse().map((one) =>
                h(
                  "li",
                  {},
                  h("span", {}, `Version ${one.generation}, ${onDay(one.at * 1000)} ${clock(one.at * 1000)}`),
                  h("span", { class: "soft" }, REASONS[one.reason] ?? one.reason),
                  actionButton(
                    "Look",
                    look(one.generation),
                    "quiet",
                    { "aria-label": `Look at version ${one.generation}` },
                  ),
                ),
              ),
            ),
        errorPlace,
        shown,
      );
    },
  });
}
