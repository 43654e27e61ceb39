/** The participants who answer in a session: the one that needs no name, and guests on other machines. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { sessions } from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";

const PLAIN = " (plain http: others can read what is said)";

/** A closed part of the page; `draw(participants)` when they changed. `id` is the session's. */
export function sessionPeople(id) {
  const summary = h("summary", {}, "Who answers");
  const trouble = h("div", {});
  const backend = h("select", { "aria-label": "Who answers what is addressed to nobody" });
  const guests = h("ul", { class: "session-guests", role: "list" });
  const choice = h("select", { "aria-label": "Whom to invite" });
  const form = h("form", { class: "session-invite" }, choice, h("button", { type: "submit", class: "secondary" }, "Invite"));
  const none = h("p", { class: "soft" }, "Nobody can be invited: pair a machine first, under Machines.");
  const element = h(
    "details",
    { class: "fold session-people" },
    summary,
    trouble,
    h("label", {}, h("span", {}, "Answers what is addressed to nobody"), backend),
    guests,
    form,
    none,
  );

  const take = (found) => {
    const { participants, possible } = found;
    fill(summary, `Who answers: ${found.backend}`);
    const plain = new Set(possible.filter((one) => one.plain).map(({ name }) => name));
    const known = new Set(participants.map(({ name }) => name));
    const others = possible.filter(({ name }) => !known.has(name));
    options(backend, [...participants, ...others].map(({ name }) => name), plain);
    backend.value = found.backend;
    fill(guests, participants.filter(({ role }) => role !== "twin").map(guest));
    options(choice, others.map(({ name }) => name), plain);
    form.hidden = !others.length;
    none.hidden = possible.length > 0;
  };
  const change = (work) => attemptIn(trouble, async () => take(await work()));

  function guest({ name, presence }) {
    const mark = presence === "away" ? "○ away" : presence === "here" ? "● here" : presence;
    const out = () => change(() => sessions.uninvite({ id, name }));
    return h(
      "li",
      {},
      h("span", {}, name, " ", h("span", { class: "soft" }, mark)),
      actionButton("Remove", out, "quiet small", { "aria-label": `Remove ${name}` }),
    );
  }

  backend.addEventListener("change", () => change(() => sessions.backend({ id, name: backend.value })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change(() => sessions.invite({ id, name: choice.value }));
  });
  element.addEventListener("toggle", () => element.open && change(() => sessions.participants({ id })));
  return {
    element,
    draw(participants) {
      if (participants.length) fill(summary, `Who answers: ${participants[0].name}`);
      if (element.open) change(() => sessions.participants({ id }));
    },
  };
}

function options(select, names, plain) {
  fill(select, names.map((name) => h("option", { value: name }, plain.has(name) ? name + PLAIN : name)));
}
