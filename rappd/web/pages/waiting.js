/** Waiting: all that waits for the owner, answered here. */

import { operatorPage } from "../components/layout/operator-page.js";
import { waitingList } from "../components/waiting/waiting-list.js";

export const mount = operatorPage("Waiting for you", "see what waits for you, and answer it", waitingList);
