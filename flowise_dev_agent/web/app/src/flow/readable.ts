/** Lists and settings of a node are JSON; people read them in lines. */
import { paramLabel } from "./layout";
import { shownText } from "./stepText";

type Rows = Record<string, unknown>;

const isRow = (value: unknown): value is Rows => typeof value === "object" && value !== null && !Array.isArray(value);
const isSet = (value: unknown): boolean => value !== "" && value !== null && value !== false && value !== undefined;

/** A file in a field, as Flowise keeps it: its type, and its name unless the text was cut before it. */
const FILE = /^data:([\w.+/-]+);base64,[^,]*(?:,filename:([^,]+))?$/;

/** "calculator" and "system · Be kind." of rows, "Model Name gpt-5.4 · Temperature 0.2" of settings; else the text. */
export function readable(text: string): string {
  const file = FILE.exec(text);
  if (file) return file[2] ?? file[1] ?? text;
  if (!/^[[{]/.test(text)) return shownText(text);
  try {
    const value: unknown = JSON.parse(text);
    if (isRow(value)) return inWords(value, []);
    return Array.isArray(value) ? value.map(lineOf).join("\n") : text;
  } catch {
    return text;
  }
}

/** The settings in a JSON object by name, as text, without those that are not set; null of another text. */
export function settingsIn(text: string): [string, string][] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRow(value)) return null;
    const set = Object.entries(value).filter(([, one]) => isSet(one));
    return set.map(([name, one]) => [name, typeof one === "string" ? one : JSON.stringify(one)]);
  } catch {
    return null;
  }
}

const lineOf = (item: unknown): string => {
  if (!isRow(item)) return typeof item === "string" ? readable(item) : JSON.stringify(item);
  const own = Object.entries(item).filter(([, value]) => isSet(value));
  const parts = own.map(([name, value]) =>
    typeof value === "string" ? shownText(value) : isRow(value) ? inWords(value, Object.keys(item)) : said(name, value),
  );
  return parts.filter(Boolean).join(" · ");
};

/** Settings with their names, without those that were said before. */
const inWords = (settings: Rows, before: string[]): string =>
  Object.entries(settings)
    .filter(([name, value]) => isSet(value) && !before.includes(name))
    .map(([name, value]) => said(name, value))
    .join(" · ");

const said = (name: string, value: unknown): string => {
  const label = paramLabel(name);
  return value === true ? label : `${label} ${typeof value === "string" ? shownText(value) : JSON.stringify(value)}`;
};
