// The meaning of "Not secure" in the address bar; nothing where the page came over https.

import { element } from "./element.js";

/** A closed explanation, or "" on https. */
export function whyNotSecure() {
  if (location.protocol === "https:") return "";
  return element("details", { className: "why" },
    element("summary", {}, "Why “Not secure”?"),
    element("p", {}, "Others on this Wi-Fi can't read your conversation. But the one who runs the Wi-Fi could change this page while it loads. Use one you trust."));
}
