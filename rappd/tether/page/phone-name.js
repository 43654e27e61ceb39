/** The name that a phone proposes for itself: its model where the browser says it, else its system and browser. */

const SYSTEMS = ["iPhone", "iPad", "Android", "Windows", "Mac", "Linux"];
const BROWSERS = [[/EdgA?\/|EdgiOS\//, "Edge"], [/SamsungBrowser\//, "Samsung Internet"], [/OPR\/|OPT\//, "Opera"],
  [/Firefox\/|FxiOS\//, "Firefox"], [/Chrome\/|CriOS\//, "Chrome"], [/Safari\//, "Safari"]];
const NO_MODEL = /^(K|Mobile|Tablet|Linux|U|wv|[a-z]{2}([-_][a-zA-Z]{2})?|rv:.*)$/; // what browsers write instead of one

/** "Pixel 8", "Android, Firefox", "iPhone, Safari"; "phone" where nothing is known. */
export function phoneName(agent = navigator.userAgent) {
  const [, inside = ""] = /\(([^)]*)\)/.exec(agent) ?? [];
  const parts = inside.split(";").map((part) => part.replace(/ Build\/.*/, "").trim());
  const after = parts.findIndex((part) => part.startsWith("Android"));
  const model = after < 0 ? undefined : parts.slice(after + 1).find((part) => part && !NO_MODEL.test(part));
  if (model) return model.slice(0, 40);
  const system = SYSTEMS.find((word) => agent.includes(word));
  const browser = BROWSERS.find(([pattern]) => pattern.test(agent))?.[1];
  return [system, system && browser].filter(Boolean).join(", ") || "phone";
}
