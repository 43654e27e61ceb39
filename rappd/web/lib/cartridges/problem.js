/** What is wrong with a cartridge's file, in the page's one shape of problems: what happened, then what to do. */

export class BadCartridge extends Error {
  constructor(message, todo = "Get it again, or mend it.") {
    super(message);
    this.todo = todo;
    this.code = "bad_cartridge";
  }
}
