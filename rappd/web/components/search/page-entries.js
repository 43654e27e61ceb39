/** The page's own part of a search: its pages and their views, and what can be begun. */

import { daemon } from "../../lib/daemon-state.js";
import { attempted } from "./search-attempt.js";

const VIEWS = [
  ["Memory: what is remembered", "#/agents/memory"],
  ["Lineage of twins", "#/twins/lineage"],
  ["Eggs: open, compare, undo", "#/twins/eggs"],
  ["Cartridges", "#/twins/cartridges"],
  ["Archived twins", "#/twins/archived"],
  ["Outbox: what waits for machines that are away", "#/machines/outbox"],
  ["Neighborhood: all your machines, snapshots, backup", "#/machines/neighborhood"],
  ["Threads: what was said", "#/activity/threads"],
  ["Picture: who asks whom", "#/activity/organism"],
  ["Log", "#/activity/log"],
];

/** Rows `{kind, title, detail, href}` or `{…, run}` of everything, to be narrowed by words. */
export function pageEntries(pages, { shortcuts }) {
  const rows = pages.map(({ id, title }) => ({ kind: "page", title, detail: "", href: `#/${id}` }));
  for (const [title, href] of VIEWS) rows.push({ kind: "page", title, detail: "", href });
  rows.push({ kind: "action", title: "Keyboard shortcuts", detail: "", run: shortcuts });
  for (const [title, choice] of COLOURS)
    rows.push({ kind: "action", title, detail: "", run: () => attempted(() => colour(choice)) });
  if (daemon.operator)
    rows.push(
      ...ACTIONS.map(([title, detail, run]) => ({ kind: "action", title, detail, run: () => attempted(run) })),
    );
  return rows;
}

const COLOURS = [
  ["Dark colours", "dark"],
  ["Light colours", "light"],
  ["Colours as this device has them, light or dark", ""],
];
const colour = async (choice) => (await import("../layout/theme.js")).chooseTheme(choice);

const ACTIONS = [
  ["New agent", "one file with one skill", async () => (await import("../agents/new-agent.js")).openNewAgent("")],
  ["New twin", "", async () => (await import("../twins/twin-dialogs.js")).openNewTwin()],
  ["Add a phone", "shows a QR code", async () => (await import("../devices/phone-pairing.js")).addPhone()],
  ["Add a machine by its address", "", async () => (await import("../machines/machine-dialogs.js")).openAddAddress()],
  ["Sign out of this browser", "you can still chat", () => daemon.close()],
];
