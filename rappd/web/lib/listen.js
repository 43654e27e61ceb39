/** Event listeners that end together. */

/** Calls `heard` at every event `type` of the sources. Returns a function that ends this. */
export function listen(type, sources, heard) {
  for (const source of sources) source.addEventListener(type, heard);
  return () => {
    for (const source of sources) source.removeEventListener(type, heard);
  };
}
