// The last step of pairing: how to come back without scanning again.

import { element } from "./element.js";

const STEPS = [
  [/iPhone|iPad/, "Tap Share, then “Add to Home Screen”."],
  [/Android/, "Open the browser's menu ⋮, then “Add to Home screen”."],
  [/./, "Save this page as a bookmark."],
];

/** A closed explanation: nothing has to be done. */
export function homeScreen(machine) {
  const [, step] = STEPS.find(([agent]) => agent.test(navigator.userAgent));
  return element("details", { className: "home-screen" },
    element("summary", {}, "Keep it on the home screen"),
    element("p", { className: "hint" }, `${step} The icon opens this page, which finds ${machine || "the computer"} again on the same Wi-Fi. No new QR code is needed.`));
}
