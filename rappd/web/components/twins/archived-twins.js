/** Twins › Archived: twins that can come back, and deleted ones. */

import { staleList } from "../ui/stale-list.js";
import { bytes, count, onDay, joinNames } from "../../lib/format.js";
import { forgetConversation } from "../chat/conversation.js";
import { actionButton, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { openDialog } from "../ui/dialog.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { twins } from "./twins-state.js";

/** Fills `place`; `close()` when done. */
export function archivedTwins(place) {
  const list = staleList(place, {
    name: "set aside",
    load: async () => {
      const [{ archived = [] }, { purged = [] }] = await Promise.all([
        operations.twins.list({ state: "archived" }),
        operations.twins.list({ state: "purged" }),
      ]);
      return { archived: archived.toReversed(), purged: purged.toReversed() };
    },
    draw: ({ archived, purged }) => [
      h("h2", {}, "Archived"),
      archived.length
        ? h("ul", { class: "cards" }, archived.map((record) => archivedCard(record)))
        : h(
            "p",
            { class: "soft" },
            "No twin is archived. An archived twin keeps everything and runs nothing.",
          ),
      h("h2", {}, "Deleted"),
      purged.length
        ? h("ul", { class: "rows" }, purged.map(purgedRow))
        : h("p", { class: "soft" }, "No twin was deleted."),
    ],
  });
  twins.addEventListener("change", list.refresh);
  return {
    close() {
      twins.removeEventListener("change", list.refresh);
      list.close();
    },
  };

  function archivedCard(record) {
    const { name, kind, archived_at: at, archived_by: by, archived_reason: reason, note } = record;
    const errorPlace = h("div", {});
    return h(
      "li",
      { class: "card twin" },
      h(
        "div",
        { class: "card-words" },
        h("h3", {}, name),
        h("p", {}, extent(record)),
        h(
          "p",
          { class: "soft" },
          [kind, `archived ${onDay(at)}`, by !== "operator" && `by ${by}`, reason]
            .filter(Boolean)
            .join(" · "),
        ),
        note && h("p", { class: "soft" }, h("span", { class: "sign warn" }, "! "), note),
        errorPlace,
      ),
      h(
        "div",
        { class: "card-actions" },
        actionButton(
          "Bring back",
          () => attemptIn(errorPlace, () => bringBack(record, list.refresh)),
          "secondary",
          { "aria-label": `Bring ${name} back` },
        ),
        actionButton(
          "Delete",
          () => openEnding(record, list.refresh),
          "quiet",
          { "aria-label": `Delete ${name}` },
        ),
      ),
    );
  }
}

/** Brings an archived twin back. Raises `Problem`. */
export async function bringBack({ hash, name }, refresh) {
  await operations.twins.unarchive({ twin: hash });
  refresh();
  twins.touch();
  const again = async () => {
    await operations.twins.archive({ twin: hash });
    refresh();
    twins.touch();
  };
  toast(`${name} is back, stopped.`, { actions: [{ label: "Undo", run: () => orShowFailure(again) }] });
}

/** Names what would be lost before it is. */
function openEnding(record, refresh) {
  const { hash, name, last_known: known = {} } = record;
  const errorPlace = h("div", {});
  openDialog({
    title: `Delete ${name}?`,
    build: (close) => {
      const end = async () => {
        const done = await attemptIn(errorPlace, () => operations.twins.purge({ twin: hash, confirm: true }));
        if (!done) return;
        forgetConversation(hash);
        refresh();
        twins.touch();
        close();
        toast(`${name} is gone.`);
      };
      return h(
        "div",
        { class: "dialog-body" },
        h("p", {}, "This is lost and cannot be had back:"),
        h(
          "ul",
          { class: "losses" },
          h("li", {}, `${name}'s soul, and every soul before it`),
          h("li", {}, "its memories, and its checkpoints"),
          known.agents?.length > 0 && h("li", {}, `its agents: ${joinNames(known.agents, 5)}`),
          h("li", {}, extent(record)),
        ),
        h(
          "p",
          { class: "soft" },
          "What stays: one line in the list of deleted twins, and its threads in Activity. Eggs that were packed of it hatch elsewhere, never here again.",
        ),
        errorPlace,
        h(
          "div",
          { class: "dialog-actions" },
          actionButton("Cancel", close),
          actionButton("Delete", end, "secondary ends"),
        ),
      );
    },
  });
}

/** "142 files, 3.1 MB in all" */
function extent({ last_known: known = {} }) {
  const { workspace_files: files, workspace_bytes: size } = known;
  const parts = [
    Number.isInteger(files) && count(files, "file"),
    Number.isInteger(size) && `${bytes(size)} in all`,
  ];
  return parts.filter(Boolean).join(", ") || "all its files";
}

function purgedRow({ name, hash, kind, purged_at: at, purged_reason: reason, note }) {
  const about = [kind, at && `deleted ${onDay(at)}`, reason, note].filter(Boolean).join(" · ");
  return h(
    "li",
    { class: "line-row" },
    h("div", {}, h("p", {}, name || hash.slice(0, 8)), h("p", { class: "soft" }, about)),
  );
}
