/** What a person changed by hand, a sentence each. */
import type { Turn } from "../api/types";
import { readable } from "../flow/readable";
import { t } from "../i18n";
import { TextDiff } from "../ui/TextDiff";

type Edit = Turn["edits"][number];

/** A longer value is shown by its beginning, and alone. */
const SHORT = 60;
const LONG = 200;

export function HandEdits({ edits }: { edits: Edit[] }) {
  return (
    <ul className="hand-edits">
      {edits.map((edit, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they do not change any more
        <li key={index}>
          <HandEdit edit={edit} />
        </li>
      ))}
    </ul>
  );
}

export const HandEdit = ({ edit }: { edit: Edit }) => (edit.field ? <OfField edit={edit} /> : inWords(edit));

function OfField({ edit: { field, node, before, after } }: { edit: Edit }) {
  const [was, is] = [readable(before), readable(after) || t("(none)")];
  if (was && Math.max(was.length, is.length) > SHORT)
    return (
      <>
        {t("{{field}} of {{node}}", { field: t(field), node })}
        <TextDiff before={was} after={is} />
      </>
    );
  return (
    <>
      {t("{{field}} of {{node}}", { field: t(field), node })}
      {": "}
      {was && (
        <>
          <span className="visually-hidden">{t("Before")} </span>
          <del>{was}</del> <span aria-hidden="true">→ </span>
          <span className="visually-hidden">{t("After")} </span>
        </>
      )}
      <strong>{is.length > LONG ? `${is.slice(0, LONG)}…` : is}</strong>
    </>
  );
}

function inWords({ op_type, node, other }: Edit): string {
  switch (op_type) {
    case "AddNode":
      return t("Added: {{node}}", { node });
    case "RemoveNode":
      return t("Removed: {{node}}", { node });
    case "ReplaceNode":
      return t("Replaced: {{node}} → {{other}}", { node, other });
    case "Connect":
      return t("Connected: {{node}} → {{other}}", { node, other });
    case "Disconnect":
      return t("Disconnected: {{node}} → {{other}}", { node, other });
    case "BindCredential":
      return t("Credential chosen: {{node}}", { node });
    case "SetPosition":
      return t("Moved: {{node}}", { node });
    case "SetLabel":
      return t("Renamed: {{node}}", { node });
    default:
      return t("Changed: {{node}}", { node });
  }
}
