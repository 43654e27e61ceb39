/**
 * Values of LisPy programs: nil is null; integers are BigInt, floats numbers; booleans and strings
 * are JavaScript's; a list is an Array, a map a Map with string keys. No list, map or pair is ever changed
 * after a program has seen it, so that only scopes can take part in a circle.
 */

import { malformed, passed } from "./errors.js";

/** A name in a program. */
export class Name {
  constructor(text) {
    this.text = text;
  }
}

/** A pair, as `cons` makes it. */
export class Pair {
  constructor(car, cdr) {
    this.car = car;
    this.cdr = cdr;
  }
}

export const DEEPEST_SCOPE = 1_000;

/**
 * The bindings of one call or `let`, and the scope around it; null around the globals. Throws Fault when it
 * would lie within too many: looking up a name must stay quick.
 */
export class Scope {
  constructor(bindings, parent) {
    this.bindings = bindings;
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    if (this.depth > DEEPEST_SCOPE) throw passed("scope_depth", DEEPEST_SCOPE, this.depth);
  }
}

/** As many arguments as one likes. */
export const ANY = 1 << 30;

/** A procedure of the language: `run(state, arguments)`, with `least` to `most` arguments. */
export class Builtin {
  constructor(name, run, least, most) {
    this.name = name;
    this.run = run;
    this.least = least;
    this.most = most;
  }
}

/**
 * A procedure written in LisPy: its whole `lambda` or `define` form, and where it was made. Its body starts
 * at `form[2]`. `rest` takes the arguments beyond `parameters`.
 */
export class Closure {
  constructor(form, scope) {
    this.form = form;
    this.scope = scope;
    this.name = "";
    let written = form[1];
    if (Array.isArray(written) && form[0].text !== "lambda") {
      this.name = written[0].text;
      written = written.slice(1);
    }
    [this.parameters, this.rest] = parametersOf(written);
  }
}

/** A closure that is given forms and returns the form to evaluate. */
export class Macro extends Closure {}

/** A procedure made of others: `kind` is partial, compose, complement or constantly. */
export class Combined {
  constructor(kind, parts) {
    this.kind = kind;
    this.parts = parts;
  }
}

/** Each kind of combination with the fewest parts it has. */
export const COMBINATIONS = new Map([
  ["partial", 1],
  ["compose", 0],
  ["complement", 1],
  ["constantly", 1],
]);

/** True for a procedure. */
export const isProcedure = (value) =>
  value instanceof Builtin ||
  value instanceof Combined ||
  (value instanceof Closure && !(value instanceof Macro));

export const isNumber = (value) => typeof value === "bigint" || typeof value === "number";

/** True unless the value is false in a test. */
export const isTrue = (value) => value !== null && value !== false;

/** The language's word for what it is. */
export function kindOf(value) {
  if (value === null) return "nil";
  if (Array.isArray(value)) return "list";
  if (value instanceof Name) return "symbol";
  if (value instanceof Pair) return "pair";
  if (value instanceof Map) return "map";
  if (value instanceof Macro) return "macro";
  return (
    { boolean: "boolean", bigint: "integer", number: "float", string: "string" }[typeof value] ?? "procedure"
  );
}

/** True for a Name with that text. */
export const isNamed = (value, text) => value instanceof Name && value.text === text;

/** A parameter list, `(a b)`, `(a . rest)` or `rest`, as its fixed names and its rest name. */
function parametersOf(written) {
  if (written instanceof Name) return [[], written.text];
  if (!Array.isArray(written)) throw malformed("lambda: parameters must be a list of names");
  let names = written;
  let rest = null;
  if (names.length >= 2 && isNamed(names.at(-2), ".")) {
    const last = names.at(-1);
    if (!(last instanceof Name)) throw malformed("lambda: the rest parameter must be a name");
    names = names.slice(0, -2);
    rest = last.text;
  }
  if (!names.every((name) => name instanceof Name && name.text !== "."))
    throw malformed("lambda: parameters must be a list of names");
  return [names.map((name) => name.text), rest];
}
