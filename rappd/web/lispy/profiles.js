/** The special forms of each profile, and what every kind of frame does with the value it waits for. */

import * as forms from "./special-forms.js";
import * as higher from "./builtins/higher-order.js";
import * as rappterbook from "./rappterbook.js";

/** By profile and by name. */
export const BEGINS = new Map([
  ["core", forms.BEGINS],
  ["rappterbook", new Map([...forms.BEGINS, ...rappterbook.BEGINS])],
]);

/** By kind of frame; calls and bodies are the machine's own. */
export const RESUMES = [];
for (const [kind, resume] of [...forms.RESUMES, ...rappterbook.RESUMES, ...higher.RESUMES])
  RESUMES[kind] = resume;
