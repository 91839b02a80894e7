/** The settings of a node as a form, made from the schema of its type. */
import { useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { nodeOptions, nodeType } from "../api/queries";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import type { StoredFile } from "../ui/files";
import { Field } from "../ui/form/Fields";
import { asked, type FormField, fieldsOf, type Schema } from "../ui/form/schema";
import { EditingContext, type EditValue } from "./edits";
import { ParamFiles } from "./ParamFiles";

/** What is not edited here: lists, and texts of these formats. */
const LISTS = new Set<FormField["kind"]>(["list", "rows", "secret"]);
const ELSEWHERE = new Set(["folder", "date", "time"]);

export function NodeForm({ node, instance }: { node: CanvasNode; instance: string }) {
  const editing = useContext(EditingContext);
  const type = useQuery({ ...nodeType(node.name, instance), enabled: editing !== null });
  // A field keeps its place, and with it the focus, when it gets a value.
  const [shown] = useState(() => new Set(node.params.map((one) => one.name)));
  if (!editing) return null;
  if (!type.data) return type.error ? <ErrorNote error={type.error} /> : <p className="quiet">{t("Loading…")}</p>;
  const values = Object.fromEntries(node.params.map((one) => [one.name, one.value]));
  const fields = asked(fieldsOf(type.data.form as Schema), values).filter(
    ({ kind, schema }) => !LISTS.has(kind) && !ELSEWHERE.has(schema.format ?? ""),
  );
  const [first, more] = [fields.filter((one) => shown.has(one.name)), fields.filter((one) => !shown.has(one.name))];
  const removed = editing.edits.removals.includes(node.id);
  const draw = (field: FormField) => (
    <ParamField
      key={field.name}
      field={field}
      type={node.name}
      instance={instance}
      value={values[field.name] ?? field.schema.default}
      files={editing.edits.values.find((one) => one.node_id === node.id && one.param === field.name)?.files ?? []}
      onSet={(value, files) => editing.set(node.id, field.name, value, files)}
    />
  );
  return (
    <form className="stack tight node-form" onSubmit={(event) => event.preventDefault()}>
      {!removed && first.map(draw)}
      {!removed && more.length > 0 && (
        <details>
          <summary>{t("More settings ({{number}})", { number: more.length })}</summary>
          <div className="stack tight more">{more.map(draw)}</div>
        </details>
      )}
      <div>
        <button type="button" className="button plain" onClick={() => editing.toggleRemoval(node.id)}>
          {removed ? t("Keep this node") : t("Remove this node")}
        </button>
      </div>
    </form>
  );
}

interface ParamProps {
  field: FormField;
  type: string;
  instance: string;
  value: unknown;
  files: StoredFile[];
  onSet: (value: EditValue | null, files?: StoredFile[]) => void;
}

/** A field of a node, with what the server lists for it. An edit is an act of its own: it counts when one is done. */
function ParamField({ field, type, instance, value, files, onSet }: ParamProps) {
  const listed = field.schema["x-lists-options"] ?? false;
  const options = useQuery({ ...nodeOptions(type, field.name, instance), enabled: listed });
  const known = options.data?.options.map((one) => ({ value: one.name, label: one.label }));
  const { format, "x-file-types": kinds } = field.schema;
  if (format === "file")
    return (
      <ParamFiles keeps kinds={kinds} files={files} onSet={onSet}>
        <span className="field-name">{t(field.label)}</span>
      </ParamFiles>
    );
  const drawn = (
    <div>
      <Field
        field={known?.length ? { ...field, kind: "choice", choices: known } : field}
        value={value}
        counts="left"
        onChange={(next) => next !== undefined && onSet(next as EditValue)}
      />
      {options.isLoading && <small>{t("Asking the server for its options…")}</small>}
    </div>
  );
  if (field.kind !== "text") return drawn;
  return (
    <ParamFiles keeps={false} files={[]} onSet={onSet}>
      {drawn}
    </ParamFiles>
  );
}
