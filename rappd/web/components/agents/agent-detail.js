/** Everything about one agent: the full description, what it takes, its source. */

import { origin } from "./agent-card.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { openDialog } from "../ui/dialog.js";
import * as operations from "../../lib/operations.js";
import { editPath } from "../../lib/router.js";
import { reachDetail } from "./reach.js";
import { runForm } from "./run-form.js";
import { listing } from "./source-dialog.js";

/** The content of the detail panel. */
export function agentDetail(file, card) {
  const errorPlace = h("div", {});
  const read = () =>
    attemptIn(errorPlace, async () => {
      const { source } = await operations.agents.source({ filename: file.filename });
      openDialog({
        title: file.filename,
        wide: true,
        build: () => h("div", { class: "dialog-body" }, listing(source)),
      });
    });
  return h(
    "div",
    { class: "detail-body" },
    h("p", { class: "told" }, card.listener?.description || card.description || "No description."),
    daemon.operator
      ? [h("h3", {}, "Run"), runForm(card).element]
      : [h("h3", {}, "Takes"), parameters(card.parameters)],
    card.try && [h("h3", {}, "Try"), h("p", {}, card.try)],
    card.listener && inXml(card.name),
    reachDetail(card),
    h("h3", {}, "From"),
    h("p", { class: "soft" }, origin(file, card)),
    daemon.operator && actionButton("View code", read),
    daemon.operator &&
      h(
        "a",
        { class: "button quiet", href: editPath(file.filename) },
        card.origin === "yours" ? "Edit" : "In the editor",
      ),
    errorPlace,
  );
}

/** A payload as programs send it, and its schema; fetched when it is first opened. */
function inXml(name) {
  const place = h("div", {});
  const errorPlace = h("div", {});
  const element = h("details", { class: "fold" }, h("summary", {}, "In XML"), errorPlace, place);
  element.addEventListener(
    "toggle",
    () =>
      attemptIn(errorPlace, async () => {
        const { example, xsd, namespace } = await operations.organism.listener({ name });
        const text = (label, shown) =>
          h("pre", { class: "run-result", tabindex: 0, role: "region", "aria-label": label }, shown);
        fill(
          place,
          h("p", { class: "soft" }, namespace),
          text("Example in XML", example),
          h("h4", {}, "Schema"),
          text("Schema", xsd),
        );
      }),
    { once: true },
  );
  return element;
}

function parameters(schema) {
  const required = new Set(schema?.required ?? []);
  const all = Object.entries(schema?.properties ?? {});
  if (!all.length) return h("p", { class: "soft" }, "Nothing.");
  return h(
    "dl",
    { class: "takes" },
    all.map(([name, property]) => [
      h(
        "dt",
        {},
        h("code", {}, name),
        h(
          "span",
          { class: "soft" },
          [typeName(property), required.has(name) && "needed"].filter(Boolean).join(", "),
        ),
      ),
      h(
        "dd",
        {},
        property.description ?? "",
        property.enum && h("span", { class: "soft" }, ` One of: ${property.enum.join(", ")}.`),
      ),
    ]),
  );
}

const typeName = ({ type }) => (Array.isArray(type) ? type.join(" or ") : (type ?? ""));
