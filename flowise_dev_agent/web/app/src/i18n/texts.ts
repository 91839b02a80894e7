/** Texts of the service. They come in English; by their codes they are said in the person's language. */
import i18next from "i18next";
import type { components } from "../api/schema";
import { language } from ".";

type TextCode = Pick<components["schemas"]["TextCode"], "code"> & Partial<components["schemas"]["TextCode"]>;
type Finding = components["schemas"]["Finding"];
/** Codes of the texts of a document, by its fields. */
export type Texts = Record<string, TextCode>;
type Params = Record<string, string | number | boolean | string[] | TextCode>;
type Worded = { texts?: Texts };

/** A text of the catalogue, in English where the language lacks it. */
export function textOf({ code, params = {} }: { code: string; params?: Params }, english: string): string {
  const count = typeof params.count === "number" ? params.count : undefined;
  const options = { lng: language(), fallbackLng: [], ns: "texts", ...(count !== undefined && { count }) };
  if (language() === "en" || !i18next.exists(code, options)) return english;
  const values = Object.entries(params).map(([name, value]) => [name, shown(value)]);
  return i18next.t(code, { ...options, replace: Object.fromEntries(values) });
}

const shown = (value: Params[string]): string =>
  Array.isArray(value) ? value.join(", ") : typeof value === "object" ? textOf(value, value.text ?? "") : String(value);

/** The text of a field; `notes.0` is the first of a list. */
export function worded<Field extends string>(
  document: Worded & { [field in Field]?: string | null },
  field: Field,
): string {
  const english = document[field] ?? "";
  const code = document.texts?.[field];
  return code ? textOf(code, english) : english;
}

/** A finding and what to do, with the name of its node as the person sees it. */
export function findingText({ code, params = {}, message }: Pick<Finding, "code" | "params" | "message">): string {
  const said = textOf({ code: `finding.${code}`, params }, message);
  if (said === message) return message;
  const problem = `${said} ${textOf({ code: `remedy.${code}` }, "")}`.trim();
  if (!params.node) return problem;
  return textOf({ code: "finding.at", params: { node: params.node, problem } }, message);
}

/** The texts of a field that is a list. */
export const wordedList = <Field extends string>(
  document: Worded & { [field in Field]: string[] },
  field: Field,
): string[] =>
  document[field].map((english, index) => {
    const code = document.texts?.[`${field}.${index}`];
    return code ? textOf(code, english) : english;
  });
