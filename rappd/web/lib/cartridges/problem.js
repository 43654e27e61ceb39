/** A problem with a cartridge's file: what happened, then what to do. */

export class BadCartridge extends Error {
  constructor(message, todo = "Get it again, or mend it.") {
    super(message);
    this.todo = todo;
    this.code = "bad_cartridge";
  }
}
