// The list of what waits for the owner, for phones that may see it: news are dismissed here, code and plans are read and answered
// where that is allowed, and the rest is answered on the computer.

import { element } from "./element.js";
import { count } from "./web/lib/format.js";

/** Builds the list; `update()` draws what changed. */
export function waiting(session, machine) {
  const title = element("summary", {});
  const rows = element("ul", {});
  const more = element("p", { className: "hint" });
  const reading = matterDialog(session);
  const list = element("details", { className: "workflows owners", hidden: true }, title, rows, more);
  let drawn = "";
  const update = () => {
    const now = session.waiting;
    reading.update();
    list.hidden = !now.may || now.rows.length === 0;
    const next = JSON.stringify(now.rows);
    if (next === drawn) return;
    drawn = next;
    const count = now.rows.length + now.more;
    title.textContent = `Waiting for you: ${count}`;
    more.textContent = now.more ? `and ${now.more} more on ${machine}` : "";
    const held = rows.contains(document.activeElement);
    rows.replaceChildren(...now.rows.map((one) => row(one, session)));
    if (held) (rows.querySelector("button") ?? title).focus();
  };
  return { list, update };
}

function row({ key, what, news, sha256 }, session) {
  const words = element("span", {}, what);
  const button = (text, onclick) => element("button", { type: "button", ariaLabel: `${text}: ${what}`, onclick }, text);
  if (news) return element("li", {}, words, button("Dismiss", () => session.dismiss(key)));
  if (sha256) return element("li", {}, words, button("Read and answer", () => session.look(key)));
  return element("li", {}, words, element("span", { className: "hint" }, "Only on the computer."));
}

/** The dialog with the whole of what is asked and the hash that an answer is bound to; it opens when the computer sends it. */
function matterDialog(session) {
  const heading = element("h2", { id: "matter", tabIndex: -1 });
  const why = element("p", {});
  const text = element("pre", { tabIndex: 0, ariaLabel: "The whole text" });
  const plan = element("div", { className: "plan-place", tabIndex: 0, role: "region", ariaLabel: "What would be written" });
  const hash = element("p", { className: "hint hash" });
  const came = element("p", { className: "notice", role: "status" });
  const yes = element("button", { type: "button", onclick: () => answer(true) }, "Approve"); // of equal weight
  const no = element("button", { type: "button", onclick: () => answer(false) }, "Refuse");
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = element("dialog", { className: "matter waiting" }, heading, why, text, plan, hash, came, element("div", { className: "buttons" }, no, yes), close);
  dialog.setAttribute("aria-labelledby", "matter");
  document.querySelector("dialog.waiting")?.remove(); // of a conversation that was shown before
  document.body.append(dialog); // outside the list, which goes when nothing waits any more
  let shown = null;
  let told = null;
  let asked = false; // an answer is on its way

  const wait = (waits, words) => {
    asked = yes.disabled = no.disabled = waits;
    came.textContent = words;
  };
  const answer = (given) => {
    if (session.answer(shown, given)) wait(true, "One moment…");
    else came.textContent = session.notice;
  };
  const open = () => {
    if (dialog.open) return;
    came.textContent = "";
    dialog.showModal();
    heading.focus();
  };
  const show = async (matter) => {
    asked = false;
    heading.textContent = matter.what;
    why.textContent = matter.why;
    text.textContent = matter.text ?? "";
    text.hidden = Boolean(matter.plan);
    plan.hidden = !matter.plan;
    why.hidden = !matter.why;
    plan.replaceChildren();
    hash.textContent = `Your answer counts for exactly ${matter.plan ? "this plan" : "these bytes"}, SHA-256 ${matter.sha256}.`;
    [yes.textContent, no.textContent] = wordsFor(matter);
    yes.disabled = no.disabled = Boolean(matter.plan); // until the plan is there to be read
    yes.hidden = matter.plan?.nothing_to_do === true;
    no.hidden = false;
    if (matter.plan) {
      const parts = await drawn(matter);
      if (matter !== shown) return;
      plan.replaceChildren(...parts);
      yes.disabled = no.disabled = false;
    }
    open();
  };
  const update = () => {
    if (session.matter !== shown && session.matter) {
      shown = session.matter;
      show(shown);
    }
    if (asked && session.state !== "connected")
      wait(false, "The connection was cut. Answer once more when it is back: if your answer counted, you are told so.");
    if (session.answered && session.answered !== told) {
      told = session.answered;
      asked = false;
      if (!dialog.open) {
        session.notice = told.text;
        return;
      }
      came.textContent = told.text;
      if (told.key !== shown?.key) return;
      if (told.done) heading.textContent = "Answered"; // it said that it waits
      yes.hidden = no.hidden = true; // what changed is sent anew, and asked anew
      close.focus();
    }
  };
  return { update };
}

const wordsFor = ({ kind, plan }) => (kind === "restore" ? ["Restore", "Don't restore"] : plan ? [hatchWords(plan), "Throw away"] : ["Approve", "Refuse"]);

const hatchWords = ({ create, replace, quarantine }) => {
  const files = create.count + replace.count + quarantine.count;
  return files ? `Hatch ${count(files, "file")}` : "Hatch";
};

/** A plan as the computer's page shows it; its parts are fetched when the first one is read. */
async function drawn({ kind, plan, egg }) {
  if (kind === "restore") {
    const [{ headOf, rowsOf }] = await Promise.all([import("./web/components/neighborhood/restore-plan.js"), look("neighborhood")]);
    const nothing = "Nothing would be written: all of it is here, or stays yours.";
    return [headOf(plan), targets(plan), ...rowsOf(plan), plan.nothing_to_do ? element("p", {}, nothing) : ""].flat().filter(Boolean);
  }
  const [{ planHead }, { planRows, isHere }] = await Promise.all([
    import("./web/components/eggs/plan-head.js"), import("./web/components/eggs/plan-rows.js"), look("eggs")]);
  const nothing = isHere(plan) ? "All of it is here already." : "Nothing would be written: what differs stays yours.";
  return [planHead(plan, { ...egg, parts: { length: egg.files } }), planRows(plan), plan.nothing_to_do ? element("p", {}, nothing) : ""];
}

/** The targets of other machines' parts, in words. */
const targets = ({ target }) =>
  element("p", {}, target === "in-place" ? "Each machine gets its own part back." : "As a simulation: other machines' twins go into a folder of the computer; no other machine is touched.");

const looks = new Map();

/** The look of plans, fetched once. */
function look(name) {
  if (!looks.has(name))
    looks.set(name, new Promise((done) => {
      const sheet = element("link", { rel: "stylesheet", href: `/t/web/css/pages/${name}.css`, onload: done, onerror: done });
      document.head.append(sheet);
    }));
  return looks.get(name);
}
