/** Putting a model server to use, as every card does it. */

import { daemon } from "../../lib/daemon-state.js";
import * as operations from "../../lib/operations.js";
import { toast } from "../ui/toast.js";

/** Changes of the server in use, for what shows it: event `change`. */
export const serverChoice = new EventTarget();

/** Takes answers from `order.kind` from now on. Raises `Problem`. */
export async function useServer(order, name) {
  await operations.models.use(order);
  toast(`${name} from now on.`);
  daemon.look();
  serverChoice.dispatchEvent(new Event("change"));
}
