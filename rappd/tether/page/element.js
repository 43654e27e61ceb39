/** Makes an element. Children are nodes or text; text is never read as HTML. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== ""));
  return made;
}
