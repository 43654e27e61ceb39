/** A text editor for code: CodeMirror, fetched when it is first needed; a plain text area where it cannot be had. */

import { h } from "../../lib/dom.js";

const modules = () => import("../../vendor/codemirror/codemirror.js");
let count = 0;

/**
 * Puts an editor with `text` into `place`. `label` names it for screen readers, `changed()` is told after each
 * change by its reader, `save()` at Ctrl-S. Gives `text()`, `set(text)`, which undo takes back, `mark(line, message)`
 * (line 0 for none), `goTo(line)`, `focus()` and `close()`.
 */
export async function codeEditor(place, options) {
  let parts = null;
  try {
    parts = await modules();
  } catch (found) {
    if (!(found instanceof TypeError)) throw found; // what `import()` raises where the daemon is away
  }
  return parts ? rich(parts, place, options) : plain(place, options);
}

function rich(parts, place, { text, label, readOnly, changed, save }) {
  const { EditorState, EditorView, keymap, setDiagnostics } = parts;
  const host = h("div", { class: "code-editor" });
  const root = host.attachShadow({ mode: "open" }); // there it adopts style sheets: the policy allows no style element
  const saving = { key: "Mod-s", run: () => (save(), true), preventDefault: true };
  const state = EditorState.create({
    doc: text,
    extensions: [
      parts.lineNumbers(),
      parts.lintGutter(),
      parts.history(),
      parts.drawSelection(),
      parts.indentOnInput(),
      parts.bracketMatching(),
      parts.highlightActiveLine(),
      parts.highlightActiveLineGutter(),
      parts.highlightSelectionMatches(),
      parts.search({ top: true }),
      parts.indentUnit.of("    "),
      parts.python(),
      parts.syntaxHighlighting(colours(parts)),
      EditorView.theme(LOOK),
      EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
      EditorState.lineSeparator.of(text.includes("\r\n") ? "\r\n" : "\n"),
      EditorState.readOnly.of(readOnly),
      keymap.of([
        ...(readOnly ? [] : [saving, parts.indentWithTab]),
        ...parts.searchKeymap,
        ...parts.historyKeymap,
        ...parts.defaultKeymap,
      ]),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
    ],
  });
  place.replaceChildren(host);
  const view = new EditorView({ state, parent: root, root });
  host.addEventListener("keydown", keepKeys);
  const now = () => view.state.sliceDoc();
  const lineAt = (number) => view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
  return {
    text: now,
    set: (fresh) =>
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: fresh },
        annotations: parts.isolateHistory.of("full"), // one undo takes back this alone
      }),
    mark(line, message) {
      const { from, to } = lineAt(line);
      const found = line ? [{ from, to: Math.max(to, from), severity: "error", message }] : [];
      view.dispatch(setDiagnostics(view.state, found));
    },
    goTo(line) {
      view.dispatch({
        selection: { anchor: lineAt(line).from },
        effects: EditorView.scrollIntoView(lineAt(line).from, { y: "center" }),
      });
      view.focus();
    },
    focus: () => view.focus(),
    close: () => view.destroy(),
  };
}

/** Typing is no shortcut of the page, though the page sees only the editor's outside. */
function keepKeys(event) {
  if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
}

function plain(place, { text, label, readOnly, changed, save }) {
  const area = h("textarea", {
    class: "code-area",
    "aria-label": label,
    spellcheck: "false",
    id: `code-area-${++count}`,
  });
  area.value = text;
  area.readOnly = readOnly;
  area.addEventListener("input", changed);
  area.addEventListener("keydown", (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    save();
  });
  place.replaceChildren(area);
  const goTo = (line) => {
    const at =
      area.value
        .split("\n")
        .slice(0, line - 1)
        .join("\n").length + (line > 1 ? 1 : 0);
    area.setSelectionRange(at, at);
    area.focus();
  };
  return {
    text: () => area.value,
    set: (fresh) => ((area.value = fresh), changed()),
    mark: () => undefined,
    goTo,
    focus: () => area.focus(),
    close: () => undefined,
  };
}

function colours({ HighlightStyle, tags }) {
  return HighlightStyle.define([
    {
      tag: [
        tags.keyword,
        tags.operatorKeyword,
        tags.controlKeyword,
        tags.definitionKeyword,
        tags.moduleKeyword,
      ],
      color: "var(--act)",
    },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
    { tag: [tags.number, tags.bool, tags.null, tags.self], color: "var(--warn)" },
    { tag: [tags.comment, tags.docString], color: "var(--soft)", fontStyle: "italic" },
    {
      tag: [
        tags.definition(tags.variableName),
        tags.function(tags.definition(tags.variableName)),
        tags.className,
      ],
      fontWeight: "600",
    },
    { tag: tags.invalid, color: "var(--bad)" },
  ]);
}

const LOOK = {
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--card)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "2px solid var(--act)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": {
    color: "var(--soft)",
    backgroundColor: "var(--card)",
    borderRight: "1px solid var(--hair)",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--edge) 9%, transparent)" },
  ".cm-activeLineGutter": {
    color: "var(--ink)",
    backgroundColor: "color-mix(in srgb, var(--edge) 14%, transparent)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--act) 26%, var(--card))",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--yolk) 26%, transparent)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--paper)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--hair)" },
  ".cm-textfield, .cm-button": {
    color: "var(--ink)",
    background: "var(--card)",
    border: "1px solid var(--edge)",
    borderRadius: "6px",
    fontSize: "1rem",
    minHeight: "32px",
  },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--card)", border: "1px solid var(--edge)" },
};
