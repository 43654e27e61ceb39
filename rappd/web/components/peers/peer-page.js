/** One peer by itself: asking it, its agents, what it may do here, and ending the trust. */

import { staleList } from "../ui/stale-list.js";
import { firstSentence, onDay, stripControl, stripControlLines } from "../../lib/format.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { facts, nameOf, named, presence, short, troubleOf, wayOut } from "../machines/machine-words.js";
import { openNote, openRenamePeer, openRevoke } from "../machines/machine-dialogs.js";
import { machines } from "../machines/machines-state.js";
import { askPeer } from "./peer-ask.js";
import { peerScopes } from "./peer-scopes.js";
import { attemptIn } from "../ui/problem.js";
import { agents as ownAgents, peers } from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { toast } from "../ui/toast.js";

const HEAD_MS = 5000; // "last seen" grows older while nothing changes

/** Fills `place` with the peer of that key; `close()` when done. */
export function peerPage(place, fingerprint) {
  const words = h("div", { class: "card-words" });
  const ends = h("div", { class: "ends-part" });
  const body = h("div", {});
  const errorPlace = h("div", {});
  const asking = h("div", { class: "ask-part" });
  let ask = null;
  let here = "";
  fill(
    place,
    h("a", { class: "button quiet back-link", href: "#/machines" }, icon("chevron", "icon back"), "Machines"),
    h(
      "div",
      { class: "twin-head" },
      words,
      h(
        "div",
        { class: "card-actions" },
        actionButton("Rename", () => openRenamePeer(row(), again)),
        actionButton("Note", () => openNote(row(), again)),
      ),
    ),
    errorPlace,
    asking,
    body,
    ends,
  );

  const row = () =>
    machines.peer(fingerprint) ?? known ?? { fingerprint, name: "", short: fingerprint.slice(0, 4) };
  let known = null;
  const list = staleList(body, {
    name: `peer ${fingerprint}`,
    load: async () => {
      const [{ peer }, { files = [] }] = await Promise.all([peers.show({ peer: fingerprint }), ownAgents.list()]);
      known = peer;
      drawHead();
      const {
        ms,
        since,
        seen_at,
        waiting,
        presence: now,
        reached,
        trouble: why,
        agents,
        address,
        ...lasting
      } = peer;
      return { peer: lasting, cards: files.flatMap(({ cards = [] }) => cards) };
    },
    draw: ({ peer, cards }) => {
      drawAsk(peer);
      drawEnds(peer);
      return [agentsPart(peer), part("What it may do here", peerScopes(peer, cards, again)), aboutPart(peer)];
    },
  });
  function again() {
    list.refresh();
    machines.touch();
  }

  function drawHead() {
    const now = row();
    fill(
      words,
      h("h2", {}, named(now), " ", short(now)),
      h("p", {}, presence(now)),
      h("p", { class: "soft" }, facts(now)),
      troubleOf(now) &&
        h(
          "div",
          { class: "problem" },
          h("p", {}, h("span", { class: "sign bad" }, "✗ "), troubleOf(now)),
          wayOut(now) && h("p", { class: "todo" }, h("span", { "aria-hidden": "true" }, "→ "), wayOut(now)),
        ),
    );
  }

  function drawAsk(peer) {
    if (!ask) {
      ask = askPeer(peer);
      fill(asking, part("Ask it something", ask.element));
    }
    ask.offers(peer.agents_here ?? [], peer.twins_here ?? []);
  }

  function agentsPart(peer) {
    const agents = peer.agents_here ?? [];
    const field = h("input", { type: "checkbox", role: "switch", id: "offer-agents" });
    field.checked = peer.offered === true;
    field.addEventListener("change", async () => {
      const on = field.checked;
      if (!(await attemptIn(errorPlace, () => peers.offer({ peer: fingerprint, on })))) field.checked = !on;
      else
        toast(
          on
            ? `${daemon.name} may use ${nameOf(peer)}'s agents now.`
            : `${daemon.name} uses ${nameOf(peer)}'s agents no more.`,
        );
      again();
    });
    return part("Its agents", [
      h(
        "label",
        { class: "switch" },
        h(
          "span",
          {},
          "Use its agents here",
          h(
            "span",
            { class: "soft help" },
            `${daemon.name} may call them while it answers, as if they were its own.`,
          ),
        ),
        field,
      ),
      agents.length
        ? h(
            "ul",
            { class: "peer-agents", role: "list" },
            agents.map(({ name, description }) =>
              h(
                "li",
                {},
                h("h3", {}, h("bdi", {}, stripControl(name))),
                description && h("p", { class: "soft" }, h("bdi", {}, inBrief(description))),
              ),
            ),
          )
        : h("p", { class: "soft" }, nothingShared(peer)),
    ]);
  }

  function drawEnds(peer) {
    fill(
      ends,
      part("Remove this machine", [
        h(
          "p",
          { class: "soft" },
          "Revoked, it may do nothing here, at once. To trust it again you pair anew.",
        ),
        actionButton("Revoke…", () => openRevoke(peer, () => go("machines")), "secondary ends"),
      ]),
    );
  }

  const moved = () => {
    drawHead();
    const now = machines.peer(fingerprint);
    const text =
      now && JSON.stringify([now.name, now.agents, now.scopes, now.offered, now.presence === "here"]);
    if (text && text !== here) list.refresh();
    here = text || here;
  };
  machines.addEventListener("change", moved);
  const aging = setInterval(() => document.hidden || drawHead(), HEAD_MS);
  drawHead();
  return {
    close() {
      clearInterval(aging);
      machines.removeEventListener("change", moved);
      ask?.close();
      list.close();
    },
  };
}

const part = (title, content) =>
  h("section", { class: "group" }, h("div", { class: "group-head" }, h("h2", {}, title)), content);

const nothingShared = (peer) =>
  machines.peer(peer.fingerprint)?.presence === "here"
    ? "It shares none with this machine. Its owner can: Machines, there."
    : "They are listed when it is here.";

const inBrief = (text) => {
  const letters = [...firstSentence(stripControlLines(text).replace(/\s+/g, " ").trim())];
  return letters.length > 240 ? `${letters.slice(0, 240).join("")}…` : letters.join("");
};

function aboutPart(peer) {
  const rows = [
    ["Note", peer.note],
    ["By itself", peer.called && peer.called !== peer.name && h("bdi", {}, nameOf({ name: peer.called }))],
    ["Whose", peer.whose === "mine" ? "yours" : "a friend's"],
    ["Paired", peer.paired_at && onDay(peer.paired_at * 1000)],
    ["Key", h("code", {}, peer.fingerprint)],
  ];
  return part(
    "About",
    h(
      "dl",
      { class: "about" },
      rows
        .filter(([, value]) => value)
        .map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value))),
    ),
  );
}
