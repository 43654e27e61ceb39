/** One agent file in the editor: its text, saving, testing, running, and its earlier versions. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { clock } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { agentsChanged } from "../agents/agent-import.js";
import { failedFiles } from "../agents/failed-files.js";
import { operatorNotice } from "../layout/operator-notice.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { codeEditor } from "./code-editor.js";
import { draftOf, dropDraft, keepDraft } from "./drafts.js";
import { conflictView, draftNote, faultNote, lineIn, readOnlyNote, saveAnywayNote } from "./editor-notes.js";
import { showRun, showTest } from "./try-out.js";
import { openVersions } from "./versions.js";

const DRAFT_MS = 300;

/** Fills `place` with the editor of `file`, of the brainstem or the twin `key`; `close()` when done. */
export function agentEditor(place, file, key = "") {
  const editor = new AgentEditorView(place, file, key);
  if (daemon.operator) editor.start();
  else fill(place, operatorNotice("edit agents"));
  return { close: () => editor.close() };
}

class AgentEditorView {
  #file;
  #key;
  #which; // the file, as operations take it
  #base = ""; // SHA-256 of what is on the disk, as far as known; "" for nothing
  #saved = ""; // that text, as the editor gives it back
  #readOnly = "";
  #code = null;
  #timer = 0;
  #saving = false;
  #closed = false;
  #place;
  #note = h("div", { class: "editor-note" });
  #outcome = h("div", { class: "editor-outcome" });
  #text = h("div", { class: "editor-text" });
  #state = h("p", { class: "soft editor-state", role: "status" });
  #buttons = h("div", { class: "editor-actions" });
  #agentsHere = h("p", { class: "soft" });

  constructor(place, file, key) {
    [this.#place, this.#file, this.#key] = [place, file, key];
    this.#which = { twin: key, filename: file };
    this.#draw();
  }

  /** Fetches the text, and the draft where there is one. */
  async start() {
    const draft = draftOf(this.#key, this.#file);
    let found = null;
    let problem = null;
    try {
      found = await operations.agents.source(this.#which);
    } catch (failure) {
      if (!(failure instanceof Problem)) throw failure;
      problem = failure;
    }
    if (this.#closed) return;
    if (!found && !draft) return fill(this.#note, problemView(problem));
    this.#readOnly = found?.read_only ?? "";
    this.#base = found?.sha256 ?? draft.base;
    await this.#open(found?.source ?? draft.text);
    if (this.#closed) return;
    fill(this.#agentsHere, found?.agents?.length > 0 && `Holds ${found.agents.join(" and ")}`);
    if (problem && problem.status !== 404) fill(this.#note, problemView(problem));
    if (this.#readOnly) this.#sayReadOnly(found);
    else if (draft) this.#restore(draft, found, problem);
    else if (found.fault) this.#fault(found.fault.reason, found.fault.line, "This does not run. ");
    this.#tellState();
    this.#drawButtons();
    agentsChanged.addEventListener("change", this.#look);
    daemon.addEventListener("back", this.#look);
    addEventListener("pagehide", this.#keep);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#code) this.#keep();
    this.#code?.close();
    agentsChanged.removeEventListener("change", this.#look);
    daemon.removeEventListener("back", this.#look);
    removeEventListener("pagehide", this.#keep);
  }

  #draw() {
    const [page, title] = this.#key
      ? [`#/twins/twin/${encodeURIComponent(this.#key)}`, "Twin"]
      : ["#/agents", "Agents"];
    fill(
      this.#place,
      h(
        "div",
        { class: "agent-editor" },
        h("a", { class: "button quiet back-link", href: page }, icon("chevron", "icon back"), title),
        h(
          "div",
          { class: "editor-head" },
          h("div", { class: "editor-title" }, h("h2", { tabindex: -1 }, this.#file), this.#agentsHere),
          h("div", { class: "editor-save" }, this.#state, this.#buttons),
        ),
        this.#note,
        this.#text,
        h("p", { class: "soft editor-help" }, "Ctrl-S saves. Tab indents; Esc, then Tab leaves the text."),
        this.#outcome,
      ),
    );
  }

  async #open(text) {
    this.#code = await codeEditor(this.#text, {
      text,
      label: `Text of ${this.#file}`,
      readOnly: Boolean(this.#readOnly),
      changed: () => this.#changed(),
      save: () => this.save(),
    });
    this.#saved = this.#code.text();
  }

  #sayReadOnly(found) {
    const copy = async () => {
      const made = await operations.agents.save({ ...this.#which, source: found.source, base: "" });
      agentsChanged.dispatchEvent(new Event("change"));
      toast(`${made.file} is yours to change.`);
      this.#code.close();
      fill(this.#note);
      await this.start();
    };
    fill(this.#note, readOnlyNote(this.#readOnly, copy));
  }

  /** The draft comes back: as unsaved text, or as one of two versions where the file is another by now. */
  #restore(draft, found, problem) {
    if (found && draft.text === this.#saved) return dropDraft(this.#key, this.#file);
    if (found) this.#code.set(draft.text);
    else this.#saved = null;
    if (found && draft.base === found.sha256) {
      fill(this.#note, draftNote(draft.at, () => this.#discard()));
    } else if (found) this.#conflict(found.source, found.sha256);
    else if (problem?.status === 404) this.#conflict(null, "");
  }

  #discard() {
    const mine = this.#code.text();
    this.#take(this.#saved ?? "");
    fill(this.#note);
    toast("Your text was thrown away.", { actions: [{ label: "Undo", run: () => this.#code.set(mine) }] });
  }

  #take(text) {
    this.#code.set(text);
    this.#keep();
    this.#tellState();
  }

  get #dirty() {
    return !this.#readOnly && this.#code !== null && this.#code.text() !== this.#saved;
  }

  #changed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#keep, DRAFT_MS);
    this.#tellState();
  }

  #keep = () => {
    if (this.#dirty) {
      const kept = keepDraft(this.#key, this.#file, this.#code.text(), this.#base);
      this.#state.classList.toggle("unkept", !kept);
      if (!kept) fill(this.#state, "Not saved. This browser keeps no drafts: save before you leave.");
    } else if (!this.#readOnly) dropDraft(this.#key, this.#file);
  };

  #tellState(text = "") {
    const now = this.#readOnly
      ? "Read only"
      : text || (this.#dirty ? "Not saved. This browser keeps your text." : "Saved");
    if (this.#state.textContent !== now) fill(this.#state, now);
    this.#state.classList.toggle("dirty", this.#dirty);
    if (this.#runButton) fill(this.#runButton, this.#dirty ? "Save and run" : "Run");
  }

  #runButton = null;

  #drawButtons() {
    const button = (label, kind, onclick) => actionButton(label, onclick, kind);
    this.#runButton = button("Run", "secondary", () => this.#run());
    fill(
      this.#buttons,
      !this.#readOnly && button("Save", "primary", () => this.save()),
      !this.#readOnly && button("Test", "secondary", () => this.#test()),
      this.#runButton,
      button("Versions", "quiet", () => this.#versions()),
    );
    this.#tellState();
  }

  /** Saves; true when the text is on the disk. `keep` saves faulty text, too. */
  async save({ keep = false } = {}) {
    if (this.#saving) return false;
    if (!this.#dirty && !keep) {
      this.#tellState("Saved");
      return true;
    }
    const source = this.#code.text();
    if (!source.trim()) {
      const empty = {
        error: "There is no text to save.",
        todo: "To take the agent out, use Remove at Agents.",
      };
      fill(this.#note, problemView(empty));
      return false;
    }
    this.#saving = true;
    this.#tellState("Saving…");
    try {
      const answer = await operations.agents.save({ ...this.#which, source, base: this.#base, keep });
      this.#base = answer.sha256;
      this.#saved = source;
      this.#keep();
      this.#code.mark(0, "");
      failedFiles.clear(this.#file);
      if (answer.status === "ok") fill(this.#note);
      else this.#fault(answer.message, lineIn(answer.message), "Saved, but not running. ");
      fill(this.#agentsHere, answer.agents?.length > 0 && `Holds ${answer.agents.join(" and ")}`);
      this.#tellState(
        answer.status === "ok" ? `Saved at ${clock(Date.now())}. ${answer.message}` : "Saved, not running",
      );
      agentsChanged.dispatchEvent(new Event("change"));
      return true;
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      this.#keep();
      this.#tellState();
      this.#refused(found);
      return false;
    } finally {
      this.#saving = false;
    }
  }

  #refused(found) {
    if (found.code === "changed_on_disk") {
      this.#conflict(found.rest.sha256 ? found.rest.source : null, found.rest.sha256);
    } else if (found.code === "bad_file" || found.code === "worker_gone" || found.code === "call_timeout") {
      this.#fault(found.message, found.line, "Not saved. ");
      this.#note.append(...saveAnywayNote(() => this.save({ keep: true })));
    } else fill(this.#note, problemView(found));
  }

  #fault(message, line, before) {
    this.#code.mark(line ?? 0, message);
    fill(this.#note, faultNote({ message, line, before, goTo: (at) => this.#code.goTo(at) }));
  }

  #conflict(theirs, sha256) {
    const settle = (base, saved) => {
      this.#base = base;
      this.#saved = saved;
      fill(this.#note);
      this.#keep();
      this.#tellState();
      this.#code.focus();
    };
    fill(
      this.#note,
      conflictView({
        file: this.#file,
        theirs,
        mine: this.#code.text(),
        keepMine: () => settle(sha256, theirs),
        takeTheirs: () => {
          if (theirs === null) {
            dropDraft(this.#key, this.#file);
            this.#readOnly = "It is gone."; // closing keeps no draft of it
            return go(...(this.#key ? ["twins", "twin", this.#key] : ["agents"]));
          }
          this.#code.set(theirs);
          settle(sha256, this.#code.text());
          toast("The text on the disk is in the editor. Ctrl-Z brings yours back.");
        },
      }),
    );
  }

  /** Another program may have written the file. */
  #look = async () => {
    if (this.#saving || this.#closed || !daemon.awake) return;
    let found = null;
    try {
      found = await operations.agents.source(this.#which);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      return; // saving says what is wrong
    }
    if (this.#saving || this.#closed || found.sha256 === this.#base || this.#readOnly) return;
    if (this.#dirty) return this.#conflict(found.source, found.sha256);
    this.#code.set(found.source);
    this.#base = found.sha256;
    this.#saved = this.#code.text();
    this.#keep();
    this.#tellState("Another program changed this file; you see it as it is now.");
  };

  async #test() {
    await showTest(this.#outcome, { key: this.#key, file: this.#file, source: this.#code.text() });
  }

  async #run() {
    if (this.#dirty && !(await this.save())) return;
    await showRun(this.#outcome, { key: this.#key, file: this.#file });
  }

  async #versions() {
    const errorPlace = h("div", {});
    fill(this.#outcome, errorPlace);
    await attemptIn(errorPlace, () =>
      openVersions({
        twin: this.#key,
        file: this.#file,
        readOnly: Boolean(this.#readOnly),
        present: () => this.#code.text(),
        take: (text) => {
          this.#take(text);
          this.#code.focus();
        },
      }),
    );
  }
}
