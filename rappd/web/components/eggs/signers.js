/** Trusted senders: keys whose eggs may run their code without review. */

import { staleList } from "../ui/stale-list.js";
import { field } from "../ui/form-dialog.js";
import { onDay, stripControl } from "../../lib/format.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";

/** A key as people compare it: in groups of four. */
export const grouped = (fingerprint) => fingerprint.replace(/(.{4})(?=.)/g, "$1 ");

/** Folded away: the whole key of an egg's signer, and what trusts it. `trusted()` when it is. */
export function trustForm(fingerprint, trusted) {
  const name = field("Whose key is it?", { maxlength: 60, required: true });
  const errorPlace = h("div", {});
  const form = h(
    "form",
    { class: "trust" },
    h(
      "p",
      {},
      "This egg was sealed with the key below. Ask the person it came from to read out the key of their machine; both must be the same:",
    ),
    h("p", {}, h("code", { class: "fingerprint" }, grouped(fingerprint))),
    h("p", { class: "soft" }, "If you trust it, the code in every complete egg from there runs on this machine without asking you."),
    name.element,
    errorPlace,
    h("button", { type: "submit", class: "secondary" }, "Trust this key"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const json = { fingerprint, name: name.input.value };
    const done = await attemptIn(errorPlace, async () => toast((await operations.eggs.trust(json)).message));
    if (done) trusted();
  });
  return h("details", { class: "fold" }, h("summary", {}, "I know who this egg is from"), form);
}

/** A button that trusts the key of a paired machine, which needs no comparing; calls `trusted()` afterwards. */
export function trustPeer(name, fingerprint, trusted = () => undefined) {
  const errorPlace = h("div", {});
  const shown = stripControl(name);
  const button = h("button", { type: "button", class: "secondary" }, `Trust ${shown}'s eggs`);
  const place = h(
    "div",
    { class: "trust" },
    h("p", { class: "soft" }, `If you trust it, the code in every complete egg from ${shown} runs on this machine without asking you.`),
    errorPlace,
    button,
  );
  button.addEventListener("click", async () => {
    const told = await attemptIn(errorPlace, async () => {
      const { message } = await operations.eggs.trust({ fingerprint, name });
      fill(place, h("p", {}, h("span", { class: "sign good" }, "✓ "), message));
      announce(message);
    });
    if (told) trusted();
  });
  return place;
}

/** The list of trusted keys, each with what ends the trust. */
export function signersList(place) {
  const list = staleList(place, {
    name: "signers",
    load: () => operations.eggs.signers(),
    draw: ({ signers = [], own = "" }) => [
      h("ul", { class: "rows" }, signers.map((one) => signerRow(one, list))),
      signers.length === 0 &&
        h(
          "p",
          { class: "soft" },
          "Only this machine. When you open an egg that somebody sent you, you can trust its sender there.",
        ),
      h(
        "p",
        { class: "soft" },
        "The key of this machine, to be read out to others: ",
        h("code", { class: "fingerprint" }, grouped(own)),
        ".",
      ),
    ],
  });
  return list;
}

function signerRow({ fingerprint, name, since }, list) {
  const errorPlace = h("div", {});
  const trust = async () => {
    await operations.eggs.trust({ fingerprint, name });
    list.refresh();
  };
  const revoke = () =>
    attemptIn(errorPlace, async () => {
      toast((await operations.eggs.revoke({ fingerprint })).message, { actions: [{ label: "Undo", run: () => orShowFailure(trust) }] });
      list.refresh();
    });
  return h(
    "li",
    { class: "line-row" },
    h(
      "div",
      {},
      h("p", {}, name, h("span", { class: "soft" }, ` since ${onDay(since)}`)),
      h("code", { class: "fingerprint" }, grouped(fingerprint)),
      errorPlace,
    ),
    actionButton("Revoke", revoke, "quiet", { "aria-label": `Revoke ${name}` }),
  );
}
