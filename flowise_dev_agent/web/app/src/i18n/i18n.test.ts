import { afterEach, expect, it, vi } from "vitest";
import { ago, plural } from "../ui/format";
import { inSentence, speak, t } from ".";
import german from "./de.json";
import english from "./en.json";
import spanish from "./es.json";
import french from "./fr.json";
import { preferredLanguage } from "./language";

const FILES: Record<string, Record<string, string>> = { german, french, spanish };
const SOURCES = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../**/*.test.*", "!../api/**"], {
  query: "?raw",
  import: "default",
  eager: true,
});
const without = (key: string) => key.replace(/_(one|many|other)$/, "");
const placeholders = (text: string) => (text.match(/\{\{\w+\}\}/g) ?? []).toSorted();

afterEach(async () => {
  localStorage.clear();
  vi.unstubAllGlobals();
  await speak("en");
});

it("has every text of the page in every language, with the same placeholders", () => {
  const used = Object.values(SOURCES).flatMap((source) =>
    [...source.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map((found) => JSON.parse(found[1] ?? '""') as string),
  );
  expect(used.length).toBeGreaterThan(300);
  for (const [name, file] of Object.entries(FILES)) {
    const known = new Set(Object.keys(file).map(without));
    expect(
      used.filter((key) => /[A-Za-z]{2}/.test(key.replace(/\{\{\w+\}\}/g, "")) && !known.has(key)),
      name,
    ).toEqual([]);
    for (const [key, text] of Object.entries(file)) expect(placeholders(text), key).toEqual(placeholders(key));
  }
  expect(Object.keys(german).length).toBeGreaterThan(400);
  for (const file of [french, spanish]) for (const key of Object.keys(german)) expect(file).toHaveProperty([key]);
  for (const key of Object.keys(english)) expect(german).toHaveProperty([key]);
});

it("keeps the rules of each language for signs and spaces, and addresses people in one way", () => {
  const wrong = (file: Record<string, string>, rule: RegExp) => Object.values(file).filter((text) => rule.test(text));
  // French: a space that does not break, the typographic apostrophe, vous. Spanish: tú. German: Sie.
  const told = (words: string) => new RegExp(`(?<!\\p{L})(${words})(?!\\p{L})`, "iu");
  expect(wrong(french, / [;:!?»]|« |\p{L}'\p{L}/u)).toEqual([]);
  expect(wrong(french, told("tu|ton|tes|toi"))).toEqual([]);
  expect(wrong(spanish, told("añada|compruebe|describa|diga|elija|introduzca|pida|pulse|revise"))).toEqual([]);
  expect(wrong(spanish, /[“”]/)).toEqual([]);
  expect(wrong(german, told("du|dich|dir|dein|deine[mnrs]?"))).toEqual([]);
});

it("speaks the language that the person chose, else the browser's, else English", async () => {
  const browser = (...languages: string[]) => vi.stubGlobal("navigator", { languages });
  browser("pt-BR", "fr-CA", "de");
  expect(preferredLanguage()).toBe("fr");
  localStorage.setItem("flowise-dev-agent-language", "es");
  expect(preferredLanguage()).toBe("es");
  localStorage.clear();
  browser("ja");
  expect(preferredLanguage()).toBe("en");
  await speak("de");
  expect(t("Approve")).toBe("Genehmigen");
  expect(inSentence("Schritte")).toBe("Schritte");
  expect([plural(1, "question"), plural(2, "question")]).toEqual(["1 Frage", "2 Fragen"]);
  expect(ago("2026-01-01T09:57:00Z", Date.parse("2026-01-01T10:00:00Z"))).toBe("vor 3 Minuten");
  // What no file has is shown as it is.
  expect(t("A title of a flow: {{x}}")).toContain("A title of a flow");
});

it("has no plural behind one, in any language", async () => {
  const forms = Object.keys(english).filter((key) => key.endsWith("_one"));
  for (const [language, file] of [
    ["en", english],
    ["de", german],
    ["fr", french],
    ["es", spanish],
  ] as const) {
    await speak(language);
    const words: Record<string, string> = file;
    const single = (number: number) => new Intl.PluralRules(language).select(number) === "one";
    for (const key of forms) {
      const said = [0, 1, 2].map((number) => plural(number, key.slice("{{count}} ".length, -"_one".length)));
      const one = words[key] ?? "";
      const other = words[key.replace(/one$/, "other")] ?? "";
      for (const [number, text] of said.entries())
        expect(text, key).toBe((single(number) ? one : other).replace("{{count}}", String(number)));
    }
    // A number stands before a noun only where its forms are known, or where it is never one.
    const nouns = new Set(forms.map((key) => (words[key.replace(/one$/, "other")] ?? "").split(" ")[1]));
    const plain = Object.entries(words).filter(([key]) => !/_(one|many|other)$|^At most|\{\{most\}\}/.test(key));
    const wrong = plain.filter(([, text]) =>
      [...text.matchAll(/\{\{(\w+)\}\} ([\p{L}]+)/gu)].some(([, , noun]) => nouns.has(noun)),
    );
    expect(wrong.map(([key]) => key)).toEqual([]);
  }
});
