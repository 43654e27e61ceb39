/** The page in the address: `#/agents/Weather` is the page "agents" with the rest `["Weather"]`. */

/** Calls `show(page, rest)` now and at each change of the address. */
export function route(pages, show) {
  const look = () => {
    const [id, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decode);
    show(pages.find((known) => known.id === id) ?? pages[0], rest);
  };
  addEventListener("hashchange", look);
  look();
}

/** Goes to a page. */
export function go(id, ...rest) {
  location.hash = `#/${[id, ...rest].map(encodeURIComponent).join("/")}`;
}

/** The editor's address for an agent file of the brainstem, or of the twin `key`. */
export const editPath = (filename, key = "") =>
  `#/${["agents", "edit", filename, ...(key ? [key] : [])].map(encodeURIComponent).join("/")}`;

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
