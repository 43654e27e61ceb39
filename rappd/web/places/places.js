/** The places, in the order of the rail. A new place is a new line here and its module. */

import { twins as living } from "../parts/twins.js";
import * as activity from "./activity.js";
import * as agents from "./agents.js";
import * as settings from "./settings.js";
import * as talk from "./talk.js";
import * as twins from "./twins.js";

/**
 * `key` follows `g`; `count(health)` is the number beside the title, `counted` its unit for screen readers.
 * A module's `mount(main, context)` draws the place and returns `{go(rest, arrived), close()}`, perhaps with
 * `drops()`, what files dropped on it would do. Its `rest()` is the part of its address to come back to.
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
  { id: "activity", title: "Activity", key: "y", icon: "activity", ...activity },
  { id: "settings", title: "Settings", key: "s", icon: "settings", ...settings },
];
