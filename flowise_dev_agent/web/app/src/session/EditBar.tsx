import { useContext, useEffect } from "react";
import { type Editing, EditingContext } from "../flow/edits";
import { t } from "../i18n";

/** What the person has changed by hand and not sent yet. */
export function EditBar() {
  const editing = useContext(EditingContext);
  useUndoKeys(editing);
  if (!editing) return null;
  const count = editing.edits.length;
  if (count === 0 && !editing.redo && !editing.undo)
    return <small className="effect">{t("Click a node in the picture to change it by hand.")}</small>;
  return (
    <fieldset className="dock-row edit-bar" aria-label={t("Your changes")}>
      <span className="badge live" role="status">
        {t("{{number}} changed by hand", { number: count })}
      </span>
      <button type="button" className="button small" disabled={!editing.undo} onClick={() => editing.undo?.()}>
        {t("Undo")}
      </button>
      <button type="button" className="button small" disabled={!editing.redo} onClick={() => editing.redo?.()}>
        {t("Redo")}
      </button>
      <button type="button" className="button small" disabled={count === 0} onClick={editing.clear}>
        {t("Discard")}
      </button>
    </fieldset>
  );
}

/** Ctrl+Z takes the last change back, Ctrl+Shift+Z or Ctrl+Y makes it again; in a text field they are the field's own. */
export function useUndoKeys(editing: Editing | null) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (
        (event.target as Element | null)?.closest?.(
          "input:not([type=checkbox]), textarea, select, dialog, [data-typing]",
        )
      )
        return;
      const key = event.key.toLowerCase();
      const step = key === "y" || (key === "z" && event.shiftKey) ? editing?.redo : key === "z" ? editing?.undo : null;
      if (!step) return;
      event.preventDefault();
      step();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [editing]);
}
