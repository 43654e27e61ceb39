/** A list of the daemon's that outlives pages: says `change` when its rows are different. */
export class ListState extends EventTarget {
  rows = [];
  #text = "";

  /** Takes rows over. */
  take(rows) {
    const text = JSON.stringify(rows);
    if (text === this.#text) return;
    this.#text = text;
    this.rows = rows;
    this.dispatchEvent(new Event("change"));
  }
}
