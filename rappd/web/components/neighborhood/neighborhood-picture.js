/**
 * The neighborhood as a picture that is a list: this machine, a line to each other one with what waits there, whether
 * each is here and backed up, and the twins in each. Above it the same in one sentence.
 */

import { bytes, count, joinNames, stripControl } from "../../lib/format.js";
import { breakable, fill, h, icon, visuallyHidden } from "../../lib/dom.js";
import { nameOf, pageOf, presence } from "../machines/machine-words.js";
import { machines } from "../machines/machines-state.js";
import { outbox } from "../outbox/outbox-state.js";
import { pageOf as pageOfTwin, stateWord } from "../twins/twin-words.js";
import { twins } from "../twins/twins-state.js";
import { waiting } from "../waiting/waiting-state.js";
import { neighborhood } from "./neighborhood-state.js";
import { backup, sign, wayOf } from "./snapshot-words.js";

const MOST_TWINS = 12;

/** The element, drawn from the states that it imports; `draw()` when one of them changed. */
export function neighborhoodPicture() {
  const picture = h("div", { class: "neighborhood", role: "group" });
  const glance = h("p", { class: "nb-glance" });
  const element = h("div", {}, glance, picture);
  let drawn = "";
  const draw = () => {
    const others = neighborhood.members.filter((row) => !row.self);
    const now = JSON.stringify([
      [others, [...neighborhood.probes], neighborhood.probing, neighborhood.snapshots, twins.rows, machines.self],
      [machines.rows.map((row) => [row.fingerprint, row.presence, row.since]), outbox.waiting.map(({ peer }) => peer)],
      waiting.rows.length,
    ]);
    if (now === drawn) return; // what has the keyboard stays
    drawn = now;
    fill(glance, atOneGlance(others));
    picture.setAttribute("aria-label", `${nameOf(machines.self)} and ${count(others.length, "other machine")}`);
    fill(
      picture,
      here(others.length),
      others.length > 0 && h("ul", { class: "nb-others", role: "list", "aria-label": "Other machines" }, others.map(other)),
    );
  };
  return { element, draw };
}

function here(others) {
  return h(
    "section",
    { class: `nb-machine self${others ? " linked" : ""}`, "aria-label": "This machine" },
    h("h3", {}, h("bdi", {}, nameOf(machines.self))),
    h("p", {}, sign("●", "good"), "this machine"),
    backedUp(selfName()),
    waiting.rows.length > 0 && h("p", {}, h("a", { class: "nb-waits", href: "#/waiting" }, waits(waiting.rows.length, "for you"))),
    twinList(twins.rows.map(({ key, name, state }) => [h("a", { href: pageOfTwin(key) }, breakable(stripControl(name))), stateWord(state)])),
  );
}

function other(row) {
  const probe = neighborhood.probes.get(row.name);
  const { kind, mark, words } = health(row, probe);
  const known = row.paired && row.fingerprint;
  const peer = known && machines.peer(row.fingerprint);
  const queued = queuedFor(row);
  const named = h("bdi", {}, nameOf(row));
  return h(
    "li",
    { class: `nb-other ${kind === "good" ? "reached" : "unreached"}` },
    h("p", { class: "nb-link" }, h("span", {}, visuallyHidden("linked by "), wayOf(row)),
      queued > 0 &&
        h(
          "a",
          { class: "nb-waits", href: "#/machines/outbox" },
          h("span", { "aria-hidden": "true" }, "→ "),
          waits(queued, visuallyHidden(` for ${nameOf(row)}`)),
        ),
    ),
    h(
      "div",
      { class: "nb-machine" },
      h("h3", {}, known ? h("a", { href: pageOf(row) }, named) : named),
      peer && h("p", {}, presence(peer)),
      h("p", {}, sign(mark, kind), words),
      backedUp(row.name),
      probe?.reachable && probe.free_bytes > 0 && h("p", { class: "soft" }, `${bytes(probe.free_bytes)} free`),
      probe?.unread?.map(({ name, reason }) =>
        h("p", {}, sign("✗", "bad"), stripControl(`${name} cannot be read: ${reason}`)),
      ),
      probe?.named && twinList(probe.named.map((name) => [stripControl(name), ""])),
    ),
  );
}

const selfName = () => neighborhood.members.find((row) => row.self)?.name ?? machines.self.name ?? "";

const queuedFor = ({ fingerprint }) => (fingerprint ? outbox.waiting.filter(({ peer }) => peer === fingerprint).length : 0);

const waits = (number, whom) => [`${number} ${number === 1 ? "waits" : "wait"} `, whom];

function backedUp(name) {
  const [mark, kind, words] = backup(name, neighborhood.snapshots);
  return h("p", {}, sign(mark, kind), words);
}

/** "2 of 3 machines are here. Calls or eggs wait for pi. pi is not backed up." */
function atOneGlance(others) {
  const all = [{ name: selfName() }, ...others];
  const isHere = (row) => machines.peer(row.fingerprint)?.presence === "here" || neighborhood.probes.get(row.name)?.reachable;
  const here = 1 + others.filter(isHere).length;
  const queues = others.filter((row) => queuedFor(row) > 0);
  const partly = all.some(({ name }) => backup(name, neighborhood.snapshots)[2].includes("partly"));
  const lacking = all.filter(({ name }) => backup(name, neighborhood.snapshots)[1] !== "good");
  const list = (rows) => joinNames(rows.map(nameOf));
  return [
    others.length ? `${here} of ${count(all.length, "machine")} ${here === 1 ? "is" : "are"} here. ` : "",
    queues.length ? `Calls or eggs wait for ${list(queues)}. ` : others.length ? "Nothing waits to be sent. " : "",
    lacking.length === 0
      ? "All is backed up."
      : `${lacking.length === all.length ? "Nothing is" : `${list(lacking)} ${lacking.length === 1 ? "is" : "are"} not`} ${partly ? "wholly " : ""}backed up.`,
  ].join("");
}

/** Says in words and with a mark if a snapshot can read a machine now. */
function health(row, probe) {
  if (probe?.reachable) return { kind: "good", mark: "✓", words: "ready for backup" };
  if (probe && machines.peer(row.fingerprint)?.presence === "away")
    return { kind: "bad", mark: "✗", words: "offline, cannot be backed up" };
  if (probe) return { kind: "bad", mark: "✗", words: stripControl(probe.detail) || "no answer" };
  if (neighborhood.probing) return { kind: "soft", mark: "·", words: "asking…" };
  if (row.trouble) return { kind: "bad", mark: "✗", words: stripControl(row.trouble) };
  return { kind: "soft", mark: "·", words: row.presence === "here" ? "here" : "not asked yet" };
}

function twinList(rows) {
  if (!rows.length) return h("p", { class: "soft" }, "no twins");
  const more = rows.length - MOST_TWINS;
  return h(
    "ul",
    { class: "nb-twins", role: "list", "aria-label": "Twins" },
    rows
      .slice(0, MOST_TWINS)
      .map(([name, state]) =>
        h("li", {}, icon("mark", "mark"), name, state && h("span", { class: "soft nb-state" }, state)),
      ),
    more > 0 && h("li", { class: "soft" }, `and ${more} more`),
  );
}
