/** Model settings: the model in use, and signing in to GitHub Copilot. */

import { Problem, get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";
import { toast } from "../ui/toast.js";

const POLL_MS = 5000;
const CALM = new Set(["ok", "ready", "looking", "no model", "", undefined]);

/** The choice of model, with the one in use. */
export function modelSettings() {
  const errorPlace = h("div", {});
  const now = h("p", {});
  const place = h("div", { class: "choice" });
  const drawNow = () =>
    fill(
      now,
      daemon.thinking || "Unknown yet.",
      h("span", { class: "soft help" }, whereItRuns(daemon.health?.provider)),
    );
  const draw = ({ models, current }) => {
    if (models.length < 2) return fill(place);
    const select = h(
      "select",
      { id: "model" },
      models.map(({ id, name }) => h("option", { value: id, selected: id === current }, name || id)),
    );
    if (!models.some(({ id }) => id === current))
      select.prepend(h("option", { value: "", selected: true, disabled: true }, current || "choose"));
    select.addEventListener("change", async () => {
      const model = select.value;
      if (await attemptIn(errorPlace, () => post("/models/set", { model })))
        toast(`${model} answers from now on.`, {
          actions: current ? [{ label: "Undo", run: () => setBack(current) }] : [],
        });
      else select.value = current;
      refresh();
    });
    fill(place, h("label", { for: "model" }, "Model"), select);
  };
  const setBack = (model) => attemptIn(errorPlace, () => post("/models/set", { model })).then(refresh);
  const refresh = () => {
    daemon.look();
    return attemptIn(errorPlace, async () => draw(await get("/models")));
  };
  daemon.addEventListener("change", drawNow);
  drawNow();
  refresh();
  return {
    element: h("div", {}, now, place, errorPlace),
    close: () => daemon.removeEventListener("change", drawNow),
  };
}

/** Signing in with a code that is typed at GitHub. */
export function signIn() {
  const place = h("div", {});
  let timer = 0;
  let closed = false;

  const idle = (problem = null, words = "Sign in to GitHub Copilot") => {
    const button = h("button", { type: "button", class: "secondary", onclick: start }, words);
    fill(
      place,
      h(
        "div",
        { class: "setting" },
        h(
          "div",
          {},
          h("p", {}, "GitHub Copilot"),
          h("p", { class: "soft" }, "Used when no other model is set. What you ask then goes to GitHub."),
        ),
        button,
      ),
      problem && problemView(problem),
    );
  };
  const start = async () => {
    try {
      waiting(await post("/login"));
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      idle(found);
    }
  };
  const waiting = ({ user_code: code, verification_uri: address }) => {
    fill(
      place,
      h(
        "div",
        { class: "sign-in" },
        h(
          "p",
          {},
          "Type this code at ",
          h(
            "a",
            { href: address, target: "_blank", rel: "noopener noreferrer" },
            address.replace(/^https:\/\//, ""),
          ),
          ".",
        ),
        h("p", { class: "code", "aria-label": [...code].join(" ") }, code),
        h("p", { class: "soft" }, "Waiting for GitHub…"),
        h(
          "button",
          { type: "button", class: "quiet", onclick: () => (clearTimeout(timer), idle()) },
          "Cancel",
        ),
      ),
    );
    timer = setTimeout(poll, POLL_MS);
  };
  const poll = async () => {
    try {
      const answer = await post("/login/poll");
      if (closed) return;
      if (answer.status === "pending") timer = setTimeout(poll, POLL_MS);
      else {
        idle(null, "Sign in again");
        announce("Signed in.");
        toast("Signed in to GitHub Copilot.");
        daemon.look();
      }
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      if (found.away) timer = setTimeout(poll, POLL_MS);
      else idle(found);
    }
  };
  const lookUp = async () => {
    try {
      const status = await get("/login/status");
      if (status.pending) waiting(status);
    } catch (found) {
      if (!(found instanceof Problem)) throw found; // the button is there all the same
    }
  };
  idle();
  lookUp();
  return {
    element: place,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function whereItRuns(provider) {
  if (!provider) return "";
  const state = CALM.has(provider.state) ? "" : `It ${provider.state}.`;
  return [provider.where && `Runs on ${provider.where}.`, state].filter(Boolean).join(" ");
}
