import { textOf as said } from "../../i18n/texts";

/** The fields of a form, read from a JSON Schema as the service gives it. Keys with `x-` are explained at its routes. */

interface Named {
  title?: string;
  description?: string;
  /** Codes of the two, for other languages. */
  "x-texts"?: { title?: string; description?: string };
}

interface Choice extends Named {
  const: string;
}

/** What the page knows of a JSON Schema. */
export interface Schema extends Named {
  type?: string;
  default?: unknown;
  format?: string;
  enum?: string[];
  oneOf?: Choice[];
  anyOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  "x-show"?: Record<string, unknown>;
  "x-hide"?: Record<string, unknown>;
  "x-options"?: Choice[];
  "x-lists-options"?: boolean;
  /** Chosen from the flow itself: an earlier step, or a key of its state. */
  "x-from-flow"?: "steps" | "state";
  /** Takes values of other steps. */
  "x-variables"?: boolean;
  /** The field with the settings of the type that is chosen here. */
  "x-config"?: string;
  /** The path of the service that lists what can be chosen. */
  "x-lists"?: string;
  "x-rows"?: number;
  /** Flowise shows it behind a button. */
  "x-additional"?: boolean;
  /** Endings of the files that it takes. */
  "x-file-types"?: string;
}

/** What can be chosen; `also` is another value that means the same. */
export interface Listed {
  value: string;
  label: string;
  also?: string;
}

export type Values = Record<string, unknown>;

export interface FormField {
  name: string;
  label: string;
  hint: string;
  kind: "line" | "text" | "secret" | "number" | "switch" | "choice" | "list" | "rows" | "group";
  choices: { value: string; label: string }[];
  required: boolean;
  /** A number may be typed beside words. */
  numeric: boolean;
  /** The fields of a row or of a group. */
  columns: FormField[];
  /** As it came. */
  schema: Schema;
}

/** Longer texts get a field of several lines, and so do those that are called so. */
const LONG = 2_000;
const PROSE = /message|prompt|instruction|template|text|code|json/i;
const MULTILINE = new Set(["code", "json", "text"]);

/** The fields of an object, in its order. A name may come more than once, told apart by its conditions. */
export function fieldsOf(schema: Schema, defs: Record<string, Schema> = schema.$defs ?? {}): FormField[] {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const variants = property.anyOf?.some((one) => one["x-show"]) ? property.anyOf : [property];
    return variants.map((variant) => fieldOf(name, variant, defs, required.has(name)));
  });
}

function fieldOf(name: string, property: Schema, defs: Record<string, Schema>, required: boolean): FormField {
  const types = (property.anyOf ?? [property]).filter((one) => one.type !== "null").map((one) => resolved(one, defs));
  const first = { ...property, ...types[0] };
  const items = first.items && resolved(first.items, defs);
  const listed = first.oneOf ?? first["x-options"] ?? first.enum?.map((value): Choice => ({ const: value })) ?? [];
  const columns = fieldsOf(items ?? first, defs);
  const nested = columns.length === 0 ? undefined : items ? "rows" : "group";
  const several = types.length > 1;
  return {
    name,
    label: inLanguage(property, "title") || name,
    // Flowise writes links into its descriptions; here they are text.
    hint: inLanguage(property, "description").replace(/<[^>]*>|`/g, ""),
    kind: nested ?? (items ? "list" : several ? "line" : kindOf(name, first, listed.length > 0)),
    choices: several ? [] : listed.map((one) => ({ value: one.const, label: inLanguage(one, "title") || one.const })),
    required,
    numeric: several && types.some((one) => one.type === "integer" || one.type === "number"),
    columns,
    schema: first,
  };
}

function kindOf(name: string, schema: Schema, listed: boolean): FormField["kind"] {
  if (schema.type === "boolean") return "switch";
  if (listed) return "choice";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.format === "password") return "secret";
  const long = (schema.maxLength ?? 0) > LONG || (schema["x-rows"] ?? 1) > 1 || MULTILINE.has(schema.format ?? "");
  return long || (schema.maxLength === undefined && PROSE.test(name)) ? "text" : "line";
}

/** A text of the service in the person's language; one of Flowise as it is. */
function inLanguage(named: Named, text: "title" | "description"): string {
  const [code, english] = [named["x-texts"]?.[text], named[text] ?? ""];
  return code ? said({ code }, english) : english;
}

const resolved = (schema: Schema, defs: Record<string, Schema>): Schema =>
  schema.$ref ? (defs[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;

/** The fields that these values ask for: one that hangs on an empty field is not asked for before that one is filled. */
export const asked = (fields: FormField[], values: Values): FormField[] => {
  const defaults = new Map(fields.map((one) => [one.name, one.schema.default]));
  const holds = ([path, wanted]: [string, unknown]) => {
    // "conditions[$index].type" is the field of the same row.
    const name = path.split("[$index].").at(-1) ?? path;
    // What is not here, or not in full, is not known.
    if (!defaults.has(name) || (name in values && values[name] === undefined)) return undefined;
    const given = listOf(values[name] ?? defaults.get(name) ?? "");
    return [wanted].flat().some((one) => given.some((value) => (one === ANYTHING ? value : value === String(one))));
  };
  return fields.filter(({ schema }) => {
    const shown = Object.entries(schema["x-show"] ?? {}).every((one) => holds(one) !== false);
    return shown && !Object.entries(schema["x-hide"] ?? {}).some((one) => holds(one) === true);
  });
};

/** How Flowise writes that a field has any value. */
const ANYTHING = ".+";

/** Several choices are a list, or one as JSON. */
function listOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String);
  try {
    const list: unknown = String(value).startsWith("[") ? JSON.parse(String(value)) : null;
    if (Array.isArray(list)) return list.map(String);
  } catch {
    // A text that only begins like a list.
  }
  return [String(value)];
}

/** The field with what the service lists for it, if anything. */
export function withListed(field: FormField, listed: Listed[] | undefined, value: unknown): FormField {
  if (!listed?.length) return field;
  const choices = listed.map(({ value: own, label, also }) => ({ value: also === value ? String(also) : own, label }));
  return { ...field, kind: "choice", choices };
}

/** What is typed into a field, as its schema has it; undefined for nothing. */
export function readValue({ kind, numeric }: FormField, text: string): unknown {
  if (kind === "list") return text.split("\n");
  if (kind !== "number" && !(numeric && /^\d+$/.test(text.trim()))) return text;
  return text.trim() && !Number.isNaN(Number(text)) ? Number(text) : undefined;
}

/** The same as text. */
export const textOf = (value: unknown): string =>
  value === null || value === undefined ? "" : Array.isArray(value) ? value.join("\n") : String(value);

/** The values of the fields that are asked for; what is empty is left out. */
export function filledIn(fields: FormField[], values: Values): Values {
  return Object.fromEntries(
    asked(fields, values).flatMap((field): [string, unknown][] => {
      const value = clean(field, values[field.name]);
      return value === undefined ? [] : [[field.name, value]];
    }),
  );
}

function clean({ columns }: FormField, value: unknown): unknown {
  if (typeof value === "string") return value.trim() || undefined;
  if (columns.length > 0 && !Array.isArray(value)) {
    const group = filledIn(columns, (value ?? {}) as Values);
    return Object.keys(group).length > 0 ? group : undefined;
  }
  if (!Array.isArray(value)) return value ?? undefined;
  const parts = columns.length
    ? value.map((row) => filledIn(columns, row as Values)).filter((row) => Object.keys(row).length > 0)
    : value.map((one) => String(one).trim()).filter(Boolean);
  return parts.length > 0 ? parts : undefined;
}
