/** The pages in the order of the navigation. A new page is an entry here and its module. */

import { devices } from "../components/devices/devices-state.js";
import { machines } from "../components/machines/machines-state.js";
import { twins } from "../components/twins/twins-state.js";
import { waiting } from "../components/waiting/waiting-state.js";
import * as chat from "./chat.js";

/**
 * `key` (or its older `alias`) follows `g`; `count(health)` is the number beside the title, `counted` its unit for screen readers.
 * `load()` gives the page's module where it was not loaded with this one. A module's `mount(main, context)` draws
 * the page and returns `{go(rest, arrived), close()}`, perhaps with `drops()`, what files dropped on it would do;
 * its `rest()` is the part of its address to come back to. Pages that are `rare` stand under More on a phone;
 * the counts of `urgent` ones stand beside that word.
 */
export const pages = [
  { id: "chat", title: "Chat", key: "c", alias: "t", icon: "chat", ...chat },
  {
    id: "agents",
    title: "Agents",
    key: "a",
    icon: "agents",
    count: (health) => health.agents?.length,
    counted: "agents",
    load: () => import("./agents.js"),
  },
  {
    id: "twins",
    title: "Twins",
    key: "w",
    icon: "twins",
    count: () => twins.rows.length,
    counted: "twins",
    load: () => import("./twins.js"),
  },
  {
    id: "machines",
    title: "Machines",
    key: "m",
    icon: "machines",
    count: () => machines.paired.length,
    counted: "machines",
    load: () => import("./machines.js"),
  },
  {
    id: "devices",
    title: "Devices",
    key: "d",
    icon: "devices",
    count: () => devices.rows.length,
    counted: "devices",
    rare: true,
    load: () => import("./devices.js"),
  },
  {
    id: "waiting",
    title: "Waiting",
    key: "n",
    icon: "waiting",
    count: () => waiting.rows.length,
    counted: "matters",
    rare: true,
    urgent: true,
    load: () => import("./waiting.js"),
  },
  {
    id: "activity",
    title: "Activity",
    key: "y",
    icon: "activity",
    rare: true,
    load: () => import("./activity.js"),
  },
  {
    id: "settings",
    title: "Settings",
    key: "s",
    icon: "settings",
    rare: true,
    load: () => import("./settings.js"),
  },
];

/** Gives the page with its module's functions; fetches the module where that was not done before. */
export async function loaded(page) {
  if (!page.mount) Object.assign(page, await page.load());
  return page;
}

/** Fetches the modules of all pages, so that they are there when the daemon is away later. */
export function loadAll() {
  for (const page of pages) loaded(page).catch(() => undefined); // showing the page tries again, and says so
}
