import { useContext } from "react";
import { countEdits, EditingContext } from "../flow/edits";
import { t } from "../i18n";

/** What the person has changed by hand and not sent yet. */
export function EditBar() {
  const editing = useContext(EditingContext);
  if (!editing) return null;
  const count = countEdits(editing.edits);
  if (count === 0 && !editing.redo) return <small>{t("Click a node in the picture to change it by hand.")}</small>;
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
