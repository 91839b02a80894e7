/** A field for prompts and code: an editor that completes variables and can be made large. A part of its own. */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension, Transaction } from "@codemirror/state";
import { Decoration, EditorView, keymap, lineNumbers, MatchDecorator, tooltips, ViewPlugin } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef, useState } from "react";
import { t } from "../i18n";

/** Something that a text or a program can name. */
export interface Variable {
  /** As it is written in a program, or between the braces of a text. */
  name: string;
  label: string;
}

export interface CodeFieldProps {
  label: string;
  /** What a screen reader says of it beside its name. */
  about: string;
  language: "text" | "javascript" | "json";
  /** It takes no line break. */
  single: boolean;
  value: string;
  variables: Variable[];
  required: boolean;
  onSet: (text: string) => void;
}

const LANGUAGES: Record<CodeFieldProps["language"], Extension[]> = {
  text: [],
  javascript: [javascript(), lineNumbers(), bracketMatching()],
  json: [json(), lineNumbers(), bracketMatching()],
};

export function CodeField(props: CodeFieldProps) {
  const { label, about, language, single, value, variables, required, onSet } = props;
  const place = useRef<HTMLDivElement>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const wide = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const [large, enlarge] = useState(false);
  // The editor is made once; it reads what is so now.
  const now = useRef({ variables, onSet, value });
  now.current = { variables, onSet, value };

  // biome-ignore lint/correctness/useExhaustiveDependencies: later values are put into it
  useEffect(() => {
    const host = document.createElement("div");
    host.className = "code-field";
    host.dataset.typing = "";
    host.dataset.language = language;
    place.current?.append(host);
    // Its styles are made by code; the page's own policy lets no other ones in.
    const root = host.attachShadow({ mode: "open" });
    const leave = (view: EditorView) => {
      const text = view.state.doc.toString();
      if (text !== now.current.value) now.current.onSet(text);
    };
    const view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: value,
        selection: { anchor: value.length },
        extensions: [
          history(),
          EditorView.lineWrapping,
          ...LANGUAGES[language],
          ...(single ? [oneLine] : []),
          syntaxHighlighting(STYLE),
          ...(language === "text" ? [marked] : []),
          autocompletion({
            override: [(context) => completed(context, language, now.current.variables)],
            icons: false,
            interactionDelay: 0,
          }),
          tooltips({ position: "fixed", parent: root as unknown as HTMLElement }),
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of({
            "aria-label": label,
            ...(about && { "aria-description": about }),
            ...(required && { "aria-required": "true" }),
            ...(single && { "aria-multiline": "false" }),
          }),
          EditorView.domEventHandlers({
            blur: (_, view) => leave(view),
            // Files are read by what is around it.
            drop: (event) => Boolean(event.dataTransfer?.files.length),
          }),
          THEME,
        ],
      }),
    });
    editor.current = view;
    return () => {
      leave(view);
      view.destroy();
      host.remove();
      editor.current = null;
    };
  }, [language, single, label]);

  useEffect(() => {
    const view = editor.current;
    if (!view || view.state.doc.toString() === value) return;
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: value },
      annotations: Transaction.addToHistory.of(false),
    });
  }, [value]);

  useEffect(() => {
    const view = editor.current;
    const host = view && (view.root as ShadowRoot).host;
    if (!host) return;
    (large ? wide.current : place.current)?.append(host);
    if (large) dialog.current?.showModal();
    if (large) view.focus();
    view.requestMeasure();
  }, [large]);

  const insert = () => {
    const view = editor.current;
    if (!view) return;
    view.focus();
    startCompletion(view);
  };
  const more = variables.length > 0 && (
    <button type="button" className="button plain small" aria-description={label} onClick={insert}>
      {t("Insert a variable")}
    </button>
  );
  return (
    <div className={single ? "code-place single" : "code-place"}>
      <div ref={place} className={large ? "taken" : undefined} />
      <div className="row">
        {more}
        {!single && (
          <button type="button" className="button plain small" aria-description={label} onClick={() => enlarge(true)}>
            {t("Large editor")}
          </button>
        )}
      </div>
      {large && (
        <dialog ref={dialog} className="large-editor" aria-label={t("Large editor")} onClose={() => enlarge(false)}>
          <header className="row">
            <strong className="grow">{label}</strong>
            {more}
            <button type="button" className="button primary small" onClick={() => dialog.current?.close()}>
              {t("Done")}
            </button>
          </header>
          <div ref={wide} className="large-place" />
        </dialog>
      )}
    </div>
  );
}

/** What can be written here: in a text between two braces, in a program behind a dollar. */
function completed(
  context: CompletionContext,
  language: CodeFieldProps["language"],
  variables: Variable[],
): CompletionResult | null {
  const program = language === "javascript";
  const begun = context.matchBefore(program ? /\$[\w.]*/ : /\{\{?\s*[$\w.]*/);
  if ((!begun && !context.explicit) || variables.length === 0) return null;
  const from = begun?.from ?? context.pos;
  const written = (name: string) => (program ? name : `{{${name}}}`);
  const options = variables.map(
    ({ name, label }): Completion => ({
      label: written(name),
      detail: label,
      apply: (view, _, start, end) => {
        const behind = view.state.sliceDoc(end, end + 2);
        const to = !program && behind === "}}" ? end + 2 : end;
        const text = written(name);
        view.dispatch({ changes: { from: start, to, insert: text }, selection: { anchor: start + text.length } });
      },
    }),
  );
  // One brace finds what has two.
  const typed = context.state.sliceDoc(from, context.pos).replace(/[{\s]/g, "").toLowerCase();
  const found = options.filter(({ label, detail }) => `${label} ${detail}`.toLowerCase().includes(typed));
  // With each key at once: Enter takes what is shown.
  return { from, options: found, filter: false, update: (_, __, ___, next) => completed(next, language, variables) };
}

const oneLine = EditorState.transactionFilter.of((change) => (change.newDoc.lines > 1 ? [] : change));

const variable = Decoration.mark({ class: "cm-variable" });
const found = new MatchDecorator({ regexp: /\{\{[^{}]*\}\}/g, decoration: variable });
/** Variables in a text have their own colour. */
const marked = ViewPlugin.define(
  (view) => ({
    decorations: found.createDeco(view),
    update(change) {
      this.decorations = found.updateDeco(change, this.decorations);
    },
  }),
  { decorations: (plugin) => plugin.decorations },
);

const STYLE = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], color: "var(--wait)" },
  { tag: [tags.string, tags.regexp], color: "var(--ok)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.comment, color: "var(--muted)" },
  { tag: tags.propertyName, color: "var(--accent-text)" },
]);

const THEME = EditorView.theme({
  "&.cm-editor": {
    border: "1px solid var(--border-strong)",
    borderRadius: "var(--radius-small)",
    background: "var(--surface)",
    color: "var(--text)",
    fontSize: "var(--size-small)",
    fontWeight: "400",
    minHeight: "var(--code-least, 7em)",
    maxHeight: "var(--code-most, 18em)",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--code-font, inherit)", overflow: "auto", lineHeight: "1.5" },
  ".cm-content": { padding: "8px 4px", caretColor: "var(--text)" },
  ".cm-gutters": { background: "var(--sunken)", color: "var(--muted)", border: "none" },
  ".cm-variable": { color: "var(--accent-text)", fontWeight: "600" },
  ".cm-tooltip": {
    fontSize: "var(--size-small)",
    fontWeight: "400",
    background: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--border-strong)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--font)", maxHeight: "14em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    background: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "1em" },
});
