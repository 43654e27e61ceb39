// The source of codemirror.js: the parts of CodeMirror that the page uses. README.md beside this folder tells how it is made.
export { Compartment, EditorSelection, EditorState } from "@codemirror/state";
export {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
export { lintGutter, setDiagnostics } from "@codemirror/lint";
export { python } from "@codemirror/lang-python";
export { tags } from "@lezer/highlight";
