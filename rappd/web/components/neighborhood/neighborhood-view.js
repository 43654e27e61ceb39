/** Machines › Neighborhood: all machines as a picture, taking a snapshot of them, and the snapshots. */

import { Problem } from "../../lib/api.js";
import { bytes, joinNames, stripControl } from "../../lib/format.js";
import { actionButton, fill, h, listen } from "../../lib/dom.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { machines } from "../machines/machines-state.js";
import { outbox } from "../outbox/outbox-state.js";
import { twins } from "../twins/twins-state.js";
import { waiting } from "../waiting/waiting-state.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { staleList } from "../ui/stale-list.js";
import { drillState, scheduleLines, sign, sizes } from "./snapshot-words.js";
import { neighborhood } from "./neighborhood-state.js";
import { neighborhoodPicture } from "./neighborhood-picture.js";
import { snapshotList } from "./snapshot-list.js";
import { workProgress } from "./work-progress.js";

const MOST = 8;

/** Fills `place`; `close()` when done. */
export function neighborhoodView(place) {
  const picture = neighborhoodPicture();
  const picturePlace = h("div", {});
  const probeError = h("div", {});
  const workError = h("div", {});
  const outcome = h("div", { class: "nb-outcome", role: "status" });
  const snapshots = h("div", {});
  const schedule = h("div", {});
  const bars = workProgress({ cancel: () => attemptIn(workError, () => neighborhood.cancel()) });
  const archived = h("input", { type: "checkbox", id: "snapshot-archived" });
  const begin = actionButton("Take a snapshot", take, "primary");
  const ask = actionButton("Refresh", () => probe(true), "quiet");
  fill(
    place,
    h(
      "section",
      { class: "group" },
      h("div", { class: "group-head" }, h("h2", {}, "All your machines"), ask),
      probeError,
      picturePlace,
    ),
    h(
      "section",
      { class: "group" },
      h("h2", {}, "Snapshot"),
      h("p", { class: "soft" }, "One file with all machines and their twins, signed, and tried at once. Keys and .env files stay behind."),
      h(
        "div",
        { class: "nb-take" },
        begin,
        h("label", { class: "choice-line", for: archived.id }, archived, h("span", {}, "Archived twins, too")),
      ),
      workError,
      bars.element,
      outcome,
    ),
    h("section", { class: "group" }, h("h2", {}, "Backups of all machines (snapshots)"), schedule, snapshots),
  );

  const lists = [
    staleList(picturePlace, {
      name: "neighborhood",
      load: async () => {
        await Promise.all([neighborhood.look(), machines.list(), twins.list()]);
        return { known: true };
      },
      draw: () => (picture.draw(), picture.element),
    }),
    staleList(snapshots, {
      name: "snapshots",
      load: async () => (await neighborhood.look()).snapshots,
      draw: (rows) => snapshotList(rows, refresh),
    }),
  ];
  const refresh = () => lists[1].refresh();
  const draw = () => {
    picture.draw();
    bars.show(neighborhood.work?.kind === "restore" && document.querySelector("dialog[open]") ? null : neighborhood.work);
    fill(schedule, scheduleLines(neighborhood.schedule));
    begin.disabled = neighborhood.work !== null;
    ask.disabled = neighborhood.probing;
  };
  const listeners = [
    listen("change", [neighborhood, machines, twins, outbox, waiting], draw),
    listen("ended", [neighborhood], refresh),
    listen("neighborhood", [daemonEvents], refresh),
  ];
  draw();
  probe();

  async function probe(anew = false) {
    try {
      fill(probeError);
      await neighborhood.probe({ anew });
      if (anew) toast("Asked every machine.");
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      if (!found.away) fill(probeError, problemView(found));
    }
  }

  async function take() {
    fill(outcome);
    fill(workError);
    begin.disabled = true;
    try {
      const options = { include_archived: archived.checked };
      const done = await neighborhood.begin("take", { options });
      fill(outcome, result(done));
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      const cancelled = found.code === "cancelled";
      if (cancelled) fill(outcome, h("p", {}, "Cancelled. Machines that were read already are not read again."));
      else fill(workError, problemView(found));
    } finally {
      begin.disabled = neighborhood.work !== null;
      refresh();
    }
  }

  return {
    close() {
      for (const list of lists) list.close();
      for (const end of listeners) end();
    },
  };
}

/** The contents of a snapshot, and the machines that it lacks. */
function result({ snapshot, failed, oversize, left_out: left, partial, untried }) {
  const [mark, kind, words] = drillState(snapshot);
  const secrets = left.filter(({ id }) => id);
  const others = left.filter(({ id }) => !id);
  const reasons = [...new Set(others.map(({ why }) => why))];
  const lines = [
    ...failed.map(({ path, why }) => [sign("✗", "bad"), `${stripControl(path)}: ${stripControl(why)}`]),
    ...oversize.map(({ path, why }) => [sign("!", "warn"), `left out, too large: ${stripControl(path)} (${bytes(Number.parseInt(why, 10))})`]),
    ...secrets.map(({ path, why }) => [sign("!", "warn"), `left out: ${stripControl(path)}, ${stripControl(why)}`]),
  ];
  const more = lines.length - MOST;
  return [
    h("p", {}, sign(partial ? "!" : "✓", partial ? "warn" : "good"), `${stripControl(snapshot.name)}: ${sizes(snapshot)}.`),
    h("p", {}, sign(mark, kind), untried ? stripControl(untried) : words),
    lines.length > 0 && h("ul", { class: "paths", role: "list" }, lines.slice(0, MOST).map((line) => h("li", {}, line))),
    more > 0 && h("p", { class: "soft" }, `and ${more} more`),
    oversize.length > 0 && h("p", { class: "soft" }, "To take larger twins, too: ", h("code", {}, "rappd neighborhood snapshot --max-twin-bytes BYTES")),
    failed.length > 0 && h("p", { class: "soft" }, "Take another when they answer: only what is missing or changed is copied."),
    ...reasons.map((why) => {
      const kept = others.filter((one) => one.why === why).map(({ path }) => path);
      return h("p", { class: "soft" }, stripControl(`Left out: ${joinNames(kept)} (${why}).`));
    }),
  ];
}
