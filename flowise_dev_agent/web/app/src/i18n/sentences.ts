/**
 * Sentences of the service, which speaks English, in the person's language. Their keys are in the files of the languages
 * beside those of the page: the sentence itself, with `{{a}}` where the service puts a name or a number.
 */
import i18next from "i18next";
import { language, t } from ".";

interface Template {
  key: string;
  names: string[];
  pattern: RegExp;
  /** Characters that are not values: the more, the surer it is that a text is meant. */
  fixed: number;
}

const PLACE = /\{\{(\w+)\}\}/;
/** What stands for a number and nothing else. */
const NUMBER = "n";
/** A template of fewer fixed characters would fit anything. */
const FEWEST = 6;
const known = new Map<string, Template[]>();

function templates(): Template[] {
  const spoken = language();
  const kept = known.get(spoken);
  if (kept) return kept;
  const file = (i18next.getResourceBundle(spoken, "translation") ?? {}) as Record<string, string>;
  const made = Object.keys(file)
    .filter((key) => PLACE.test(key) && !/_(one|many|other)$/.test(key))
    .map((key) => {
      // Texts and names of places in turn.
      const parts = key.split(PLACE);
      const texts = parts.filter((_, index) => index % 2 === 0);
      const names = parts.filter((_, index) => index % 2 === 1);
      const values = names.map((name) => (name === NUMBER ? "(\\d+)" : "(.+?)"));
      const pattern = new RegExp(
        `^${texts.map((text, index) => escaped(text) + (values[index] ?? "")).join("")}$`,
        "s",
      );
      return { key, names, pattern, fixed: texts.join("").length };
    })
    .filter(({ fixed, names }) => fixed >= FEWEST || names.every((name) => name === NUMBER))
    .sort((one, other) => other.fixed - one.fixed);
  known.set(spoken, made);
  return made;
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A text of the service, sentence by sentence; what no file has stays as it is. */
export function said(text: string): string {
  if (language() === "en") return text;
  return text.split("\n").map(line).join("\n");
}

function line(text: string): string {
  const sentences = text.split(/(?<=[.!?])\s+/);
  const found: string[] = [];
  for (let from = 0; from < sentences.length; ) {
    // A template may have several sentences: the longest piece that is known comes first.
    let to = sentences.length;
    let words: string | null = null;
    while (to > from && words === null) {
      words = translated(sentences.slice(from, to).join(" "));
      to -= 1;
    }
    if (words === null) found.push(clauses(sentences[from++] ?? ""));
    else {
      found.push(words);
      from = to + 1;
    }
  }
  return found.join(" ");
}

/** Counted things, such as "2 nodes added, 1 removed; 1 field changed": all of them or none. French has its own "; ". */
function clauses(text: string): string {
  const parts = text.split(/([;,] )/);
  const words = parts.map((part, index) => (index % 2 === 0 ? translated(part) : t(part)));
  return words.every((one) => one !== null) ? words.join("") : text;
}

const isKnown = (text: string): boolean => i18next.exists(text, { lngs: [language()], fallbackLng: [] });

/** A value may hold words of the service itself, whole or in brackets. As a key a foreign text could name another one. */
const word = (value: string): string =>
  isKnown(value) ? t(value) : clauses(value).replace(/\(([^()]+)(\)|$)/g, (_, inside, end) => `(${said(inside)}${end}`);

/** The service shortens long texts. */
const CUT = "…";
const SUREST = 20;

function completed(text: string): string | null {
  if (!text.endsWith(CUT) || text.length < SUREST) return null;
  const file = i18next.getResourceBundle(language(), "translation") as Record<string, string>;
  const key = Object.keys(file).find((one) => one.startsWith(text.slice(0, -1)));
  return key ? t(key) : null;
}

function translated(text: string): string | null {
  if (isKnown(text)) return t(text);
  // In brackets a sentence has no full stop.
  if (isKnown(`${text}.`)) return t(`${text}.`).replace(/\.$/, "");
  const whole = completed(text);
  if (whole !== null) return whole;
  for (const { key, names, pattern } of templates()) {
    const found = pattern.exec(text);
    if (found) return t(key, Object.fromEntries(names.map((name, index) => [name, word(found[index + 1] ?? "")])));
  }
  return null;
}
