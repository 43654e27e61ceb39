/** The list of all that waits for the owner: first what needs an answer, with its answers, then news to be read. */

import { actionButton, h, listen, withCode } from "../../lib/dom.js";
import { timeOrDay } from "../../lib/format.js";
import { keyedList } from "../ui/keyed-list.js";
import { attemptIn } from "../ui/problem.js";
import { answersTo, nameOfKind } from "./waiting-answers.js";
import { waiting } from "./waiting-state.js";

/** Fills `place`; `close()` when done. */
export function waitingList(place) {
  const asks = keyedList("ul", "cards waiting-cards", ({ key }) => key, card);
  const news = keyedList("ul", "cards waiting-cards", ({ key }) => key, card);
  const all = actionButton("Dismiss all news", () => dismissAll(), "quiet small");
  const tell = h("button", { type: "button", class: "quiet small", onclick: () => waiting.want(!waiting.wanted) });
  const problem = h("div", {});
  const asksPart = part("Needs your answer", asks.element);
  const newsPart = part("News", news.element, problem, h("p", {}, all));
  const nothing = h(
    "div",
    { class: "plain", role: "status" },
    h("p", { class: "greeting" }, "Nothing waits for you."),
    h("p", { class: "soft" }, "What needs your yes appears here: code that came from elsewhere, eggs that others sent, and machines and phones that want to join."),
  );
  const element = h("div", {}, nothing, asksPart, newsPart);
  place.replaceChildren(element, h("p", { class: "waiting-foot" }, tell));
  const dismissAll = () => attemptIn(problem, () => waiting.dismiss());

  const draw = () => {
    const held = element.contains(document.activeElement);
    const read = waiting.rows.filter((row) => row.news);
    const open = waiting.rows.filter((row) => !row.news);
    asks.show(open);
    news.show(read);
    asksPart.hidden = open.length === 0;
    newsPart.hidden = read.length === 0;
    nothing.hidden = waiting.rows.length > 0;
    all.hidden = read.length < 2;
    tell.hidden = !waiting.possible;
    tell.textContent = waiting.wanted ? "No notices by this browser" : "Let this browser tell me what happens";
    if (held && !element.contains(document.activeElement)) next(element);
  };
  const end = listen("change", [waiting], draw);
  draw();
  waiting.touch();
  return {
    close() {
      end();
      asks.close();
      news.close();
    },
  };
}

/** Gives the keyboard to the next matter, or to the page, once the one that had it is answered. */
function next(element) {
  const control = [...element.querySelectorAll("li button, li a")].find((one) => one.checkVisibility());
  (control ?? document.querySelector("#main h1")).focus();
}

function card(row) {
  const problem = h("div", {});
  const when = row.at ? timeOrDay(new Date(row.at * 1000)) : "now";
  const element = h(
    "li",
    { class: `card agent waiting-card${row.news ? "" : " quarantined"}`, "data-key": row.key },
    h(
      "div",
      { class: "card-words" },
      h("h3", {}, nameOfKind(row)),
      h("p", {}, row.what),
      row.why && h("p", { class: "reason" }, h("span", { class: "sign warn" }, "! "), row.why),
      h("p", { class: "soft" }, when, ["failed", "unready"].includes(row.kind) && row.do && [" · ", h("span", {}, withCode(row.do))]),
      problem,
    ),
    h("div", { class: "card-actions" }, answersTo(row, problem)),
  );
  return { element, update: () => undefined, close: () => undefined };
}

const part = (title, ...content) => h("section", { class: "waiting-part", "aria-label": title }, h("h2", {}, title), content);
