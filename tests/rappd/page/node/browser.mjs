/** The little of a browser that modules of the page need where nothing is laid out. */

class Node extends EventTarget {
  constructor(text = "") {
    super();
    this.data = text;
  }

  get textContent() {
    return this.data;
  }
}

class Element extends Node {
  constructor(tag) {
    super();
    Object.assign(this, { tagName: tag.toUpperCase(), children: [], attributes: {}, hidden: false, dataset: {}, value: "" });
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  append(...children) {
    this.children.push(...children.map((child) => (child instanceof Node ? child : new Node(String(child)))));
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  get textContent() {
    return this.children.map((child) => child.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  get classList() {
    const names = new Set((this.attributes.class ?? "").split(" ").filter(Boolean));
    const kept = () => (this.attributes.class = [...names].join(" "));
    return {
      contains: (name) => names.has(name),
      add: (name) => (names.add(name), kept()),
      remove: (name) => (names.delete(name), kept()),
      toggle: (name, on = !names.has(name)) => (on ? names.add(name) : names.delete(name), kept()),
    };
  }

  /** Elements below with `tag`. */
  all(tag) {
    return this.children
      .filter((child) => child instanceof Element)
      .flatMap((child) => [...(child.tagName === tag.toUpperCase() ? [child] : []), ...child.all(tag)]);
  }
}

const kept = new Map();
const document = Object.assign(new EventTarget(), {
  createElement: (tag) => new Element(tag),
  createElementNS: (_, tag) => new Element(tag),
  documentElement: new Element("html"),
  body: new Element("body"),
  querySelector: () => null,
  querySelectorAll: () => [],
  getElementById: () => null,
});
const nothing = () => undefined;
Object.assign(globalThis, {
  document,
  window: globalThis,
  location: { hash: "", origin: "http://127.0.0.1", pathname: "/", search: "" },
  localStorage: {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, String(value)),
    removeItem: (name) => kept.delete(name),
  },
  sessionStorage: { getItem: () => null, setItem: nothing, removeItem: nothing },
  addEventListener: nothing,
  removeEventListener: nothing,
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  ResizeObserver: class {
    observe() {}
  },
  XMLHttpRequest: class {
    open() {}
    send() {}
  },
});
