/** The form for a new flow, read from the JSON Schema that the service gives, and the design made from it. */
import type { DesignForm } from "../api/types";

/** What the page knows of a JSON Schema. */
export interface Schema {
  type?: string;
  description?: string;
  enum?: string[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
}

export type Row = Record<string, string>;
/** A line of text for each field, lines of text for lists, rows for lists of things. */
export type Answers = Record<string, string | Row[]>;

export interface Question {
  name: string;
  label: string;
  hint: string;
  kind: "line" | "text" | "choice" | "number" | "list" | "rows";
  choices: string[];
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  /** The fields of a row. */
  columns: Question[];
}

/** Parts that only some kinds of flows have; the service checks the same. */
const ONLY: Record<string, string[]> = {
  steps: ["steps"],
  prompt: ["chat", "task"],
  memory: ["chat"],
  tools: ["chat"],
  sources: ["chat"],
  refused_words: ["chat", "task"],
  fields: ["task"],
};
const LABELS: Record<string, string> = { name: "Name", url: "Address" };
/** Longer texts get a field of several lines. */
const LONG = 2_000;

/** The questions of the schema, in its order. */
export function questionsOf(schema: Schema, defs: Record<string, Schema> = schema.$defs ?? {}): Question[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => questionOf(name, property, defs));
}

function questionOf(name: string, property: Schema, defs: Record<string, Schema>): Question {
  const options = (property.anyOf ?? [property]).filter((one) => one.type !== "null").map((one) => resolved(one, defs));
  const first = options[0] ?? {};
  const items = first.items && resolved(first.items, defs);
  const base = {
    name,
    label: LABELS[name] ?? capital(name.replaceAll("_", " ")),
    hint: property.description ?? "",
    choices: first.enum ?? [],
    maxLength: first.maxLength,
    minimum: first.minimum,
    maximum: first.maximum,
    columns: items?.properties ? questionsOf(items, defs) : [],
  };
  if (base.columns.length) return { ...base, kind: "rows" };
  if (items) return { ...base, kind: "list" };
  // A choice or a number, such as the memory, is typed.
  if (options.length > 1) return { ...base, kind: "line", choices: [] };
  if (first.enum) return { ...base, kind: "choice" };
  if (first.type === "number" || first.type === "integer") return { ...base, kind: "number" };
  return { ...base, kind: (first.maxLength ?? 0) > LONG ? "text" : "line" };
}

const resolved = (schema: Schema, defs: Record<string, Schema>): Schema =>
  schema.$ref ? (defs[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The questions that belong to a kind of flow. */
export const asked = (questions: Question[], kind: string): Question[] =>
  questions.filter(({ name }) => ONLY[name]?.includes(kind) ?? true);

/** The design made of the answers; what is left empty is left out. */
export function designOf(questions: Question[], answers: Answers): DesignForm {
  const found: Record<string, unknown> = {};
  for (const question of asked(questions, String(answers.kind || "chat"))) {
    const value = valueFrom(question, answers[question.name] ?? "");
    if (value !== undefined) found[question.name] = value;
  }
  return found as unknown as DesignForm;
}

function valueFrom(question: Question, answer: string | Row[]): unknown {
  if (typeof answer !== "string") {
    const rows = answer.map((row) => Object.fromEntries(Object.entries(row).filter(([, text]) => text.trim())));
    const filled = rows.filter((row) => Object.keys(row).length);
    return filled.length ? filled : undefined;
  }
  const text = answer.trim();
  if (!text) return undefined;
  if (question.kind === "list") return text.split("\n").map(trimmed).filter(Boolean);
  if (question.kind === "number") return Number(text);
  if (question.name === "memory" && /^\d+$/.test(text)) return Number(text);
  return text;
}

const trimmed = (line: string): string => line.trim();

/** The answers that lead to a design. */
export function answersOf(questions: Question[], design: DesignForm): Answers {
  const found: Answers = {};
  for (const { name, kind } of questions) {
    const value = (design as unknown as Record<string, unknown>)[name];
    if (value === undefined || value === null) continue;
    if (kind === "rows") found[name] = (value as Record<string, unknown>[]).map(rowOf);
    else if (kind === "list") found[name] = (value as string[]).join("\n");
    else found[name] = String(value);
  }
  return found;
}

const rowOf = (row: Record<string, unknown>): Row =>
  Object.fromEntries(Object.entries(row).map(([key, one]) => [key, String(one ?? "")]));
