/** Which place is shown: `#/agents/Weather` is the place "agents" with the rest `["Weather"]`. */

/** Calls `show(place, rest, arrived)` now and at each change; `arrived` is false for a change within a place. */
export function route(places, show) {
  let shown = null;
  const look = () => {
    const [id, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decode);
    const place = places.find((known) => known.id === id) ?? places[0];
    const arrived = place !== shown;
    shown = place;
    show(place, rest, arrived);
  };
  addEventListener("hashchange", look);
  look();
}

/** Goes to a place. */
export function go(id, ...rest) {
  location.hash = `#/${[id, ...rest].map(encodeURIComponent).join("/")}`;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
