/** Card of GitHub Copilot: signing in with a code, and using it. */

import { Problem, get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { cardFrame } from "./card-frame.js";
import { serverChoice, useServer } from "./server-choice.js";

const POLL_MS = 5000;
const REFUSED = "no_access";

/** The card; `update(servers)` takes what `/models/servers` tells. */
export function copilotCard() {
  const errorPlace = h("div", {});
  const refused = h("p", { hidden: true }, h("span", { class: "sign warn" }, "! "), "GitHub says that this account has no Copilot.");
  const use = actionButton(
    "Use it",
    () => attemptIn(errorPlace, () => useServer({ kind: "copilot" }, "GitHub Copilot answers")),
    "primary",
    { hidden: true },
  );
  const login = signIn();
  const frame = cardFrame(
    "GitHub Copilot",
    "For those who pay for Copilot, or have it for free from GitHub. What you write goes to GitHub.",
    refused,
    h("div", { class: "server-actions" }, use, login.element),
    errorPlace,
  );
  return {
    element: frame.element,
    close: login.close,
    update({ used, copilot, limits }) {
      frame.limits(used === "copilot" ? limits : []);
      const signedIn = Boolean(copilot.state) && copilot.state !== REFUSED;
      frame.mark(used === "copilot" ? "used" : signedIn ? "ready" : "");
      use.hidden = !signedIn || used === "copilot";
      refused.hidden = copilot.state !== REFUSED;
    },
  };
}

/** Signing in with a code that is typed at GitHub. */
function signIn() {
  const place = h("div", {});
  let timer = 0;
  let closed = false;

  const idle = (problem = null, words = "Sign in to GitHub") => {
    const button = actionButton(words, start);
    fill(place, button, problem && problemView(problem));
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
        actionButton("Cancel", () => (clearTimeout(timer), idle()), "quiet"),
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
        toast("Signed in to GitHub Copilot.");
        daemon.look();
        serverChoice.dispatchEvent(new Event("change"));
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
