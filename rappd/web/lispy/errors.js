/** Errors of LisPy programs and LisPy files. */

export const CATEGORIES = new Set([
  "syntax",
  "evaluation",
  "unsupported",
  "invalid-data",
  "resource-limit",
  "capability",
  "serialization",
  "validation",
]);

/** The error a LisPy program ends with. There is nothing in the language that catches one. */
export class Fault extends Error {
  constructor(category, message, { resource = null, limit = null, used = null } = {}) {
    super(message);
    this.category = category;
    this.resource = resource;
    this.limit = limit;
    this.used = used;
  }

  asJson() {
    const { category, message, resource, limit, used } = this;
    return { category, message, resource, limit, used };
  }
}

/** A frozen machine that is damaged, made up, or beyond what its reader allows; nothing was run. */
export class BadImage extends Error {
  constructor(message, todo = "Get it again.") {
    super(message);
    this.todo = todo;
  }
}

/** A value that cannot be handed to a LisPy program, or read from outside of it. */
export class BadValue extends Error {}

/** A form is not written as the language wants it. */
export const malformed = (message) => new Fault("syntax", message);

/** An operation does not go with its arguments. */
export const wrong = (message) => new Fault("evaluation", message);

/** The program used more than it may. */
export function passed(resource, limit, used) {
  const message = `execution limit exceeded: ${resource} (limit ${limit}, used ${used})`;
  return new Fault("resource-limit", message, { resource, limit, used });
}
