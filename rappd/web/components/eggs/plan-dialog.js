/** Plan dialog: the egg's origin and integrity, the effect of hatching it, and the approval of exactly that. */

import { Problem } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { openFiles } from "../cartridges/cartridge-opening.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { discardEgg, uploadEgg } from "./egg-upload.js";
import { hatched } from "./hatch-notice.js";
import { isHere, overwriteChoices, planRows, spokenRows } from "./plan-rows.js";
import { planHead } from "./plan-head.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { progressLine } from "../ui/progress.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { announce } from "../../lib/live-region.js";
import { openDialog } from "../ui/dialog.js";
import { trustForm, trustPeer } from "./signers.js";

/**
 * Takes a file to the daemon, with the `signature` that came beside it, if any, and shows its plan; `decided()`
 * when the dialog is closed. A `file` of `{name, path}` is one that another machine sent here.
 */
export function openPlan(file, decided, signature) {
  const control = new AbortController();
  const body = h("div", { class: "dialog-body" });
  let ident = "";
  let hatching = false;
  let kept = false; // it is replayed now
  const dialog = openDialog({
    title: file.name,
    build: () => body,
    closed: async () => {
      control.abort();
      try {
        // The next may be the same egg, which has the same id: it is not opened before this one is gone.
        if (ident && !hatching && !kept) await discardEgg(ident);
      } finally {
        decided();
      }
    },
  });
  dialog.classList.add("plan-dialog");
  const heading = dialog.querySelector("h2");
  const line = progressLine(`Reading ${file.name}…`, { cancel: () => dialog.close() });
  fill(body, line.element);
  take();

  async function take() {
    try {
      const asked = { moved: line.moved, signal: control.signal };
      const { id, plan, egg } = file.path
        ? await operations.eggs.look({ path: file.path }, line.moved)
        : await uploadEgg(file, signature, asked);
      ident = id;
      fill(heading, egg.name || file.name);
      if (dialog.open) planned(plan, egg);
      else discardEgg(id);
    } catch (found) {
      if (found.name === "AbortError") return;
      if (!(found instanceof Problem)) throw found;
      fill(body, refusal(found), closing(() => dialog.close(), "Close"));
    }
  }

  function planned(first, egg) {
    const errorPlace = h("div", {});
    const head = h("div", {});
    const rows = h("div", {});
    const choices = h("div", {});
    const trust = h("div", {});
    const foot = h("div", { class: "dialog-foot" });
    let plan = first;
    const chosen = new Set();
    const run = async () => {
      const opened = await attemptIn(errorPlace, () => openFiles([file, signature].filter(Boolean)));
      if (!opened) return;
      dialog.close();
      go("twins", "cartridges");
    };
    const replay = () => {
      kept = true;
      dialog.close();
      go("chat", "replay", ident);
    };
    const replayHere =
      first.egg.kind === "session" &&
      actionButton("Replay", replay, "primary");
    const runHere =
      first.egg.kind === "lispy" &&
      !file.path &&
      actionButton("Run it here", run);

    const draw = () => {
      fill(head, planHead(plan, egg));
      fill(rows, plan.answer && !writes(plan) ? null : planRows(plan));
      fill(choices, overwriteChoices(plan, chosen, again));
      fill(foot, actions());
    };
    const actions = () => {
      const files = writes(plan);
      if (!files && plan.answer) return closing(() => dialog.close(), "Close", runHere, replayHere);
      if (plan.nothing_to_do)
        return [
          h(
            "p",
            {},
            isHere(plan)
              ? "All of it is here already."
              : "Nothing would be written: what differs stays yours.",
          ),
          closing(() => dialog.close(), "Close", runHere),
        ];
      const button = h(
        "button",
        { type: "button", class: "primary" },
        files ? `Hatch ${count(files, "file")}` : "Hatch",
      );
      button.addEventListener("click", () => hatch(button));
      return closing(() => dialog.close(), "Cancel", runHere, button);
    };
    /** Asks for the plan anew. True when there is one. */
    const again = async (why = "") => {
      const focused = document.activeElement?.id;
      try {
        ({ plan } = await operations.eggs.plan({ id: ident, overwrite: [...chosen] }));
      } catch (found) {
        if (!(found instanceof Problem)) throw found;
        fill(errorPlace, problemView(found));
        return false;
      }
      fill(
        errorPlace,
        why && h("p", { class: "note" }, h("span", { class: "sign warn" }, "! "), why),
      );
      draw();
      if (focused) document.getElementById(focused)?.focus();
      announce(`${why} ${spokenRows(plan)}`);
      return true;
    };
    const hatch = async (button) => {
      const work = crypto.randomUUID();
      const refused = h("div", {});
      const cancel = () => attemptIn(refused, () => operations.eggs.cancel({ work })).then(way.settled);
      const way = progressLine(`Hatching ${count(writes(plan), "file")}…`, { cancel });
      button.disabled = hatching = true;
      foot.hidden = true; // the line has the one Cancel that counts now
      fill(errorPlace, way.element, refused);
      const overwrite = [...chosen];
      const json = { ...(file.path ? { path: file.path } : { id: ident }), approved: plan.digest, overwrite, source: file.name, work };
      try {
        const answer = await operations.eggs.hatch(json, way.moved);
        dialog.close();
        if (file.path) discardEgg(ident); // the copy that was looked at; what came is gone by itself
        hatched(answer.hatched);
      } catch (found) {
        if (!(found instanceof Problem)) throw found;
        hatching = foot.hidden = false;
        if (!dialog.open) discardEgg(ident);
        else if (found.code === "plan_changed")
          await again("Something changed since you saw the plan; nothing was written. This is the plan now.");
        else {
          const cancelled = found.code === "cancelled";
          fill(errorPlace, cancelled ? h("p", {}, found.message) : problemView(found));
          if (cancelled) announce(found.message);
          button.disabled = false;
        }
      }
    };

    draw();
    fill(
      trust,
      first.seal.standing === "unknown" &&
        (first.seal.whose
          ? trustPeer(first.seal.signer_name, first.seal.signer, () => again().then(() => fill(trust)))
          : trustForm(first.seal.signer, () => again().then(() => fill(trust)))),
    );
    fill(body, head, rows, choices, trust, errorPlace, foot);
    heading.focus();
    announce(`${egg.name}: ${foot.querySelector("p")?.textContent ?? spokenRows(plan)}`);
  }
}

const writes = (plan) => plan.create.count + plan.replace.count + plan.quarantine.count;

/** A refusal; what it says line by line beyond the first is folded away. */
function refusal(found) {
  const [first, ...rest] = found.message.split("\n");
  return h(
    "div",
    {},
    problemView({ message: first, todo: found.todo }),
    rest.length > 0 &&
      h(
        "details",
        { class: "fold" },
        h("summary", {}, "What hatches here"),
        h(
          "pre",
          { class: "log", tabindex: 0, role: "region", "aria-label": "What hatches here" },
          rest.join("\n"),
        ),
      ),
  );
}

const closing = (close, words, ...others) =>
  h("div", { class: "dialog-actions" }, actionButton(words, close), others);
