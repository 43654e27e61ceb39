/** A machine as a person looks at it. */

import { BODY, FIELDS } from "./frames.js";
import { shortly } from "./printer.js";
import { APPLY, DONE, EVALUATE } from "./state.js";
import { isUnchanged } from "./builtins/table.js";
import { isNamed } from "./values.js";

/**
 * `{next, steps, depth, waiting, globals, output}`: what is next, the frames that wait for it (newest first, in
 * words), the globals of the program's own as `[name, value]` in words, and what it wrote.
 */
export function inspect(state) {
  return {
    next: nextOf(state),
    steps: state.steps,
    depth: state.stack.filter((frame) => frame[0] === BODY).length,
    waiting: [...state.stack].reverse().map(frameInWords),
    globals: [...state.globals.bindings]
      .filter(([name, value]) => !isUnchanged(name, value))
      .map(([name, value]) => [name, shortly(value, 60)]),
    output: state.output.join(""),
  };
}

function nextOf({ mode, form, procedure, arguments: args, value, fault }) {
  if (mode === EVALUATE) return `evaluate ${shortly(form)}`;
  if (mode === APPLY) return `apply ${shortly(procedure)} to ${shortly(args)}`;
  return mode === DONE
    ? `nothing: it gave ${shortly(value)}`
    : `nothing: ${fault.category}: ${fault.message}`;
}

function frameInWords([kind, form]) {
  const { name } = FIELDS[kind];
  if (kind !== BODY) return Array.isArray(form) ? `${name} ${shortly(form, 60)}` : name;
  const head = form[1];
  const isOfName = Array.isArray(head) && head.length > 0 && !isNamed(form[0], "lambda");
  return `${name} of ${shortly(isOfName ? head[0] : form, 60)}`;
}
