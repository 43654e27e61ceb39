/** Notices of agents that were loaded or failed to load, and of failures that the daemon reports later. */

import { daemonEvents } from "../../lib/event-stream.js";
import * as operations from "../../lib/operations.js";
import { toast } from "../ui/toast.js";
import { agentsChanged } from "./agent-import.js";
import { failedFiles } from "./failed-files.js";

/** Starts the notices; `tryIt(words)` puts an example into the message box. */
export function startAgentNotices(tryIt) {
  daemonEvents.addEventListener("failed", ({ detail }) =>
    failedFiles.add({ error: detail.message, todo: detail.do }),
  );
  daemonEvents.addEventListener("agents", ({ detail }) => {
    if (detail.ok === false) failed(detail);
    else if (detail.kind === "waits") failedFiles.clear(detail.file);
    else loaded(detail, tryIt);
    agentsChanged.dispatchEvent(new Event("change"));
  });
}

function failed({ message, file, do: todo = "fix and save; it reloads by itself" }) {
  failedFiles.add({ error: message.replace(/^✗\s*/, ""), todo, file });
}

async function loaded({ message, try: example }, tryIt) {
  toast(message, { actions: example ? [{ label: "Try", run: () => tryIt(example) }] : [] });
  if (!failedFiles.list.length) return;
  try {
    failedFiles.mended(message, (await operations.agents.list()).files);
  } catch (found) {
    if (found.code === undefined) throw found; // the failure stays until it is dismissed
  }
}
