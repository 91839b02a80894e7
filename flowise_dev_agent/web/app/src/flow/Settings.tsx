/** Fields of a node type with what the server lists for them, and with the settings of what is chosen in them. */
import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useContext, useMemo } from "react";
import { nodeOptions, nodeType, serverVariables } from "../api/queries";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { Field, type TextControl } from "../ui/form/Fields";
import { asked, type FormField, fieldsOf, type Schema, type Values } from "../ui/form/schema";
import { type Building, BuildingContext } from "./building";
import { CredentialField } from "./CredentialField";
import { rowsOf } from "./layout";
import { shownText, storedText } from "./stepText";
import { earlier, variablesFor } from "./variables";

const CodeField = lazy(() => import("../ui/CodeField").then((module) => ({ default: module.CodeField })));
/** How the texts of a format are written; others are prose. */
const LANGUAGES: Record<string, "javascript" | "json"> = { code: "javascript", json: "json" };
/** A longer line gets several. */
const LINE = 60;

/** Where the settings of a model or a tool hold their credential. */
const CREDENTIALS = ["FLOWISE_CREDENTIAL_ID", "credential"];
/** Texts of these formats are not edited here. */
const ELSEWHERE = new Set(["folder", "date", "time"]);

export const editable = ({ kind, schema }: FormField): boolean =>
  kind !== "secret" && !ELSEWHERE.has(schema.format ?? "");

interface Props {
  field: FormField;
  /** The node type that has the field, for the options of its server. */
  type: string;
  instance: string;
  /** Of the field and of those beside it. */
  values: Values;
  /** The node that is built, where a credential of what is chosen can be set. */
  nodeId?: string;
  /** Before its name in a path: of the list and its row that it is in, such as `agentTools[0].`. */
  within?: string;
  /** Paths of what must be filled in. */
  needs?: string[];
  /** With a name, or a path into the settings of what is chosen. */
  onSet: (path: string, value: unknown) => void;
}

const isSaid = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value) && value !== "";

/** An edit is an act of its own: it counts when one is done. */
export function Setting({ field, type, instance, values, nodeId, within = "", needs = [], onSet }: Props) {
  const building = useContext(BuildingContext);
  const { name, schema } = field;
  const node = nodeId ? building?.nodes.find((one) => one.id === nodeId) : undefined;
  const writes = field.kind === "text" || Boolean(schema["x-variables"]);
  const stored = useQuery({ ...serverVariables(instance), enabled: writes && node !== undefined });
  const variables = useMemo(
    () => (building && node ? variablesFor(node, building, stored.data?.variables ?? [], schema.format) : []),
    [building, node, stored.data, schema.format],
  );
  const value = values[name];
  const listed = schema["x-lists-options"] ?? false;
  const options = useQuery({ ...nodeOptions(type, name, instance), enabled: listed });
  const known =
    options.data?.options.map((one) => ({ value: one.name, label: one.label })) ??
    (building && nodeId ? fromFlow(schema["x-from-flow"], nodeId, building) : []);
  const config = schema["x-config"];
  const textOf = (one: FormField, control: TextControl): ReactNode => {
    const language = LANGUAGES[one.schema.format ?? ""] ?? "text";
    // Of a step, and of a tool or a model in one.
    const rich = language === "text" && (within !== "" || type.endsWith("Agentflow"));
    const value = rich ? shownText(control.value) : control.value;
    const lines = (one.schema["x-rows"] ?? 1) > 1;
    const single = one.kind === "line" && value.length <= LINE && !value.includes("\n");
    if (one.kind !== "text" && !(one.kind === "line" && one.schema["x-variables"])) return null;
    return (
      <>
        <input type="hidden" name={control.name} value={value} />
        <Suspense fallback={<textarea disabled rows={single ? 1 : 5} value={value} aria-label={one.label} />}>
          <CodeField
            {...{ language, single, value }}
            label={one.label}
            about={control.about}
            required={control.required}
            variables={variables}
            onSet={(text) => control.onSet(rich ? storedText(text, lines) : text)}
          />
        </Suspense>
      </>
    );
  };
  const kind = field.kind === "list" ? field.kind : "choice";
  const inRow = (list: FormField, row: Values, setRow: (row: Values) => void, index: number): ReactNode =>
    asked(list.columns, row)
      .filter(editable)
      .map((one) => (
        <Setting
          key={one.name}
          {...{ field: one, values: row, type, instance, needs }}
          {...(nodeId && { nodeId })}
          within={`${within}${name}[${index}].`}
          onSet={(path, next) => {
            const [first = "", inner] = path.split(".");
            // Settings belong to what was chosen before.
            const { [one.schema["x-config"] ?? ""]: settings, ...others } = row;
            setRow(
              inner ? { ...row, [first]: { ...(settings as Values), [inner]: next } } : { ...others, [first]: next },
            );
          }}
        />
      ));
  return (
    <div data-field={within + name}>
      <Field
        // A name may mean several things, told apart by other fields: each has a control of its own.
        key={field.kind + field.choices.length}
        // While they are asked for it is a choice already: another control would lose the focus.
        field={known.length > 0 || options.isLoading ? { ...field, kind, choices: known } : field}
        value={value}
        counts="left"
        needs={needs}
        path={within}
        text={textOf}
        row={inRow}
        onChange={(next) => next !== undefined && onSet(name, next)}
      />
      {value === undefined && isSaid(schema.default) && (
        <small>{t("Not set. Default: {{value}}", { value: String(schema.default) })}</small>
      )}
      {options.isLoading && <small>{t("Asking the server for its options…")}</small>}
      {config && !(config in values && values[config] === undefined) && typeof value === "string" && value && (
        <Config
          key={value}
          type={value}
          instance={instance}
          values={(values[config] ?? {}) as Values}
          {...(nodeId && { nodeId })}
          within={`${within}${config}.`}
          needs={needs}
          onSet={(inner, next) => onSet(`${config}.${inner}`, next)}
        />
      )}
    </div>
  );
}

/** What can be chosen from the flow itself: a step before this one, or a key of the state that the start declares. */
export function fromFlow(
  what: "steps" | "state" | undefined,
  id: string,
  { nodes, edges }: Pick<Building, "nodes" | "edges">,
) {
  if (what === "state")
    return nodes
      .flatMap((one) => rowsOf(one, "startState").map(({ key }) => String(key ?? "")))
      .filter(Boolean)
      .map((key) => ({ value: key, label: key }));
  const node = what === "steps" && nodes.find((one) => one.id === id);
  return node
    ? earlier(node, { nodes, edges }).map((one) => ({ value: `${one.id}-${one.label}`, label: one.label }))
    : [];
}

/** The settings of a model or a tool inside of a node. */
function Config({ type, instance, values, nodeId, within = "", needs = [], onSet }: Omit<Props, "field">) {
  const found = useQuery(nodeType(type, instance));
  if (!found.data) return <ErrorNote error={found.error} />;
  const fields = asked(fieldsOf(found.data.form as Schema), values).filter(
    (one) => editable(one) && one.schema.format !== "file" && one.kind !== "rows",
  );
  const { credentials } = found.data.node;
  const path = within.slice(0, -1);
  const credential = nodeId && credentials.length > 0 && (
    <CredentialField
      nodeId={nodeId}
      path={path}
      types={credentials}
      bound={CREDENTIALS.some((one) => Boolean(values[one]))}
      instance={instance}
    />
  );
  if (fields.length === 0) return credential || null;
  return (
    <>
      {credential}
      <details className="config">
        <summary>{t("Settings of {{name}}", { name: found.data.node.label })}</summary>
        <div className="stack tight more">
          {fields.map((field) => (
            <Setting key={field.name} {...{ field, type, instance, values, within, needs, onSet }} />
          ))}
        </div>
      </details>
    </>
  );
}
