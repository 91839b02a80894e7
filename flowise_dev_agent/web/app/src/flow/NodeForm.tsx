/** The settings of a node as a form, made from the fields of its type. */
import { useQuery } from "@tanstack/react-query";
import { useContext, useId, useState } from "react";
import { nodeOptions, nodeType } from "../api/queries";
import type { CanvasNode, NodeField } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { EditingContext, type EditValue } from "./edits";

/** Types of fields that are edited here; connections, credentials and files are not. */
const EDITABLE = new Set(["string", "number", "boolean", "options", "asyncOptions", "code", "json"]);
/** A text that is longer, or of a field that is called so, gets several lines. */
const LONG = 60;
const PROSE = /message|prompt|instruction|template|text|code|json/i;

export function NodeForm({ node, instance }: { node: CanvasNode; instance: string }) {
  const editing = useContext(EditingContext);
  const type = useQuery({ ...nodeType(node.name, instance), enabled: editing !== null });
  // A field keeps its place, and with it the focus, when it gets a value.
  const [shown] = useState(() => new Set(node.params.map((one) => one.name)));
  if (!editing) return null;
  if (!type.data) return type.error ? <ErrorNote error={type.error} /> : <p className="quiet">{t("Loading…")}</p>;
  const set = new Map(node.params.map((one) => [one.name, one.value]));
  const fields = type.data.inputs.filter((one) => EDITABLE.has(one.type));
  const [first, more] = [fields.filter((one) => shown.has(one.name)), fields.filter((one) => !shown.has(one.name))];
  const removed = editing.edits.removals.includes(node.id);
  const draw = (field: NodeField) => (
    <Field
      key={field.name}
      field={field}
      node={node}
      instance={instance}
      value={set.get(field.name) ?? (field.default === null ? "" : String(field.default))}
      onSet={(value) => editing.set(node.id, field.name, value)}
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

interface FieldProps {
  field: NodeField;
  node: CanvasNode;
  instance: string;
  value: string;
  onSet: (value: EditValue) => void;
}

function Field({ field, node, instance, value, onSet }: FieldProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const [seen, see] = useState(value);
  // A value from outside, as by undo.
  if (seen !== value) {
    see(value);
    setText(value);
  }
  const options = useQuery({ ...nodeOptions(node.name, field.name, instance), enabled: field.lists_options });
  const choices = field.lists_options ? (options.data?.options.map((one) => one.name) ?? []) : field.options;
  const commit = (next: string) => {
    if (next === value || (field.type === "number" && (!next.trim() || Number.isNaN(Number(next))))) return;
    onSet(field.type === "number" ? Number(next) : next);
  };
  const common = { id, "data-param": field.name };
  if (field.type === "boolean")
    return (
      <label className="check">
        <input
          type="checkbox"
          {...common}
          checked={value === "true"}
          onChange={(event) => onSet(event.target.checked)}
        />
        {field.label}
      </label>
    );
  return (
    <div className="field">
      <label htmlFor={id}>{field.label}</label>
      {choices.length > 0 ? (
        <select {...common} value={value} onChange={(event) => onSet(event.target.value)}>
          {!choices.includes(value) && <option value={value}>{value || t("Choose…")}</option>}
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : field.type === "number" ? (
        <input
          type="number"
          step="any"
          {...common}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onBlur={() => commit(text)}
        />
      ) : value.length > LONG || PROSE.test(field.name) ? (
        <textarea
          rows={5}
          {...common}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onBlur={() => commit(text)}
        />
      ) : (
        <input {...common} value={text} onChange={(event) => setText(event.target.value)} onBlur={() => commit(text)} />
      )}
      {options.isLoading && <small>{t("Asking the server for its options…")}</small>}
    </div>
  );
}
