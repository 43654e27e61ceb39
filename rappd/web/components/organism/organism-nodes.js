/** The parts of the organism in their order, with who asks them and whom they ask, and their words. */


/** Kinds in the order of the picture, with the word for each. */
const KINDS = new Map([
  ["person", "who asks here"],
  ["timer", "timer"],
  ["brainstem", "this machine"],
  ["twin", "twin"],
  ["agent", "agent"],
  ["listener", "listener"],
  ["gateway", "gateway"],
  ["peer", "machine"],
]);
const ORDER = [...KINDS.keys()];

/**
 * The nodes of `graph`, by kind, those that were asked first. Each has `about` (its kind and state in words), `asked` (how
 * often, in the last hour), and `from` and `to`: its edges, with the nodes at both ends as `source` and `target`.
 */
export function inOrder({ nodes, edges }) {
  const every = new Map(nodes.map((node) => [node.id, { ...node, from: [], to: [], asked: 0 }]));
  for (const edge of edges) {
    const [source, target] = [every.get(edge.from), every.get(edge.to)];
    if (!source || !target) continue;
    const whole = { ...edge, source, target };
    source.to.push(whole);
    target.from.push(whole);
    target.asked += edge.calls;
  }
  for (const node of every.values()) {
    node.about = [KINDS.get(node.kind) ?? node.kind, node.state !== "ready" && node.state].filter(Boolean).join(", ");
  }
  const place = ({ kind }) => (ORDER.indexOf(kind) + ORDER.length) % ORDER.length;
  return [...every.values()].sort(
    (one, other) => place(one) - place(other) || other.asked - one.asked || one.name.localeCompare(other.name),
  );
}

/** "once", "3 times", or in which way the one may ask the other. */
export function wordsOf({ kind, calls }) {
  if (calls > 0) return times(calls);
  return kind === "asks" ? "not in the last hour" : kind;
}

/** The callers of a node in the last hour: "asked 3 times: by Rose 2, by research 1"; "" for one that nobody asked. */
export function askedWords({ asked, from }) {
  const some = from.filter(({ calls }) => calls > 0);
  if (some.length === 0) return "";
  if (some.length === 1) return `asked ${times(asked)} by ${some[0].source.name}`;
  return `asked ${times(asked)}: ${some.map(({ source, calls }) => `by ${source.name} ${calls}`).join(", ")}`;
}

const times = (calls) => (calls === 1 ? "once" : `${calls} times`);

/** The address of what the page shows of a node; "" for none. */
export function pageOf({ id, name, kind, state }) {
  if (id.startsWith("twin:")) return `#/twins/twin/${encodeURIComponent(id.slice(5).split("/")[0])}`; // and what is its own
  const key = encodeURIComponent(id.slice(id.indexOf(":") + 1));
  const pages = {
    brainstem: "#/chat",
    peer: `#/machines/peer/${encodeURIComponent(name)}`,
    agent: state === "ready" ? `#/agents/${key}` : "#/agents",
    listener: state === "ready" ? `#/agents/${key}` : "#/agents",
    person: "#/activity",
  };
  return pages[kind] ?? "";
}
