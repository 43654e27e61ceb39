/** The places, in the order of the rail. A new place is a new line here and its module. */

import { machines as others } from "../components/machines/machines.js";
import { twins as living } from "../components/twins/twins.js";
import * as activity from "./activity.js";
import * as agents from "./agents.js";
import * as machines from "./machines.js";
import * as settings from "./settings.js";
import * as talk from "./chat.js";
import * as twins from "./twins.js";

/**
 * `key` follows `g`; `count(health)` is the number beside the title, `counted` its unit for screen readers.
 * A module's `mount(main, context)` draws the place and returns `{go(rest, arrived), close()}`, perhaps with
 * `drops()`, what files dropped on it would do. `rare` ones stand under More on a phone. Its `rest()` is the part of its address to come back to.
 */
export const places = [
  { id: "talk", title: "Talk", key: "t", icon: "talk", ...talk },
  {
    id: "agents",
    title: "Agents",
    key: "a",
    icon: "agents",
    count: (health) => health.agents?.length,
    counted: "agents",
    ...agents,
  },
  {
    id: "twins",
    title: "Twins",
    key: "w",
    icon: "twins",
    count: () => living.rows.length,
    counted: "twins",
    ...twins,
  },
  {
    id: "machines",
    title: "Machines",
    key: "m",
    icon: "machines",
    count: () => others.paired.length,
    counted: "machines",
    ...machines,
  },
  { id: "activity", title: "Activity", key: "y", icon: "activity", rare: true, ...activity },
  { id: "settings", title: "Settings", key: "s", icon: "settings", rare: true, ...settings },
];
