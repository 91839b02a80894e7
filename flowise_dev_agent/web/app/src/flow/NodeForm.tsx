/** The settings of a node as a form, made from the schema of its type. */
import { useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { nodeType } from "../api/queries";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { asked, type FormField, fieldsOf, type Schema } from "../ui/form/schema";
import { BuildingContext } from "./building";
import { CredentialField } from "./CredentialField";
import { EditingContext, type EditValue, editOf, valuesOf } from "./edits";
import { ParamFiles } from "./ParamFiles";
import { editable, Setting } from "./Settings";

export function NodeForm({ node, instance }: { node: CanvasNode; instance: string }) {
  const editing = useContext(EditingContext);
  const building = useContext(BuildingContext);
  const type = useQuery({ ...nodeType(node.name, instance), enabled: editing !== null });
  // A field keeps its place, and with it the focus, when it gets a value.
  const [opened] = useState(node);
  if (!editing) return null;
  if (!type.data) return type.error ? <ErrorNote error={type.error} /> : <p className="quiet">{t("Loading…")}</p>;
  const all = fieldsOf(type.data.form as Schema);
  const values = valuesOf(node, all);
  const fields = asked(all, values).filter(editable);
  const before = valuesOf(opened, all);
  const needs = (building?.findings.get(node.id) ?? [])
    .filter((one) => one.code === "REQUIRED_PARAM_MISSING" && one.severity === "error")
    .map((one) => one.field);
  const isFolded = ({ name, schema }: FormField) =>
    schema["x-additional"] &&
    !needs.includes(name) &&
    (before[name] ?? schema.default ?? "").toString() === (schema.default ?? "").toString();
  const [first, more] = [fields.filter((one) => !isFolded(one)), fields.filter(isFolded)];
  const removed = editing.edits.some((one) => one.op_type === "RemoveNode" && one.node_id === node.id);
  const draw = (field: FormField) => {
    const { name, label, kind } = field;
    const { format, "x-file-types": kinds } = field.schema;
    const setFiles = (value: EditValue | null, files?: Parameters<typeof editing.set>[3]) =>
      editing.set(node.id, name, value, files);
    if (format === "file")
      return (
        <ParamFiles
          key={name}
          keeps
          kinds={kinds}
          files={editOf(editing.edits, node.id, name)?.files ?? []}
          onSet={setFiles}
        >
          <span className="field-name">{label}</span>
        </ParamFiles>
      );
    if (name in values && values[name] === undefined)
      return (
        <p key={name} className="field">
          {label}
          <small>{t("This is too long to be shown here, or holds a secret. Say in words what should change.")}</small>
        </p>
      );
    const setting = (
      <Setting
        key={name}
        {...{ field, type: node.name, instance, values, needs }}
        {...(editing.builds && { nodeId: node.id })}
        onSet={(path, value) => editing.set(node.id, path, value as EditValue)}
      />
    );
    if (kind !== "text") return setting;
    return (
      <ParamFiles key={name} keeps={false} files={[]} onSet={setFiles}>
        {setting}
      </ParamFiles>
    );
  };
  return (
    <form className="stack tight node-form" onSubmit={(event) => event.preventDefault()}>
      {!removed && editing.builds && type.data.node.credentials.length > 0 && (
        <CredentialField
          nodeId={node.id}
          path=""
          types={type.data.node.credentials}
          bound={node.credential === "bound"}
          instance={instance}
        />
      )}
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
