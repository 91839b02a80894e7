/** The languages of the page, and which of them a person reads. */

export const LANGUAGES = { en: "English", de: "Deutsch", fr: "Français", es: "Español" } as const;
export type Language = keyof typeof LANGUAGES;
const FILES: Record<Exclude<Language, "en">, () => Promise<{ default: Record<string, string> }>> = {
  de: () => import("./de.json"),
  fr: () => import("./fr.json"),
  es: () => import("./es.json"),
};
const KEPT = "flowise-dev-agent-language";

export const known = (tag: string | null | undefined): Language | null => {
  const language = tag?.slice(0, 2).toLowerCase() ?? "";
  return language in LANGUAGES ? (language as Language) : null;
};

/** The person's choice, else the first language of the browser that the page speaks, else English. */
export function preferredLanguage(): Language {
  return known(localStorage.getItem(KEPT)) ?? navigator.languages.map(known).find((one) => one !== null) ?? "en";
}

/** The texts of a language by their English ones; none for English itself. */
export const wordsOf = async (language: Language): Promise<Record<string, string>> =>
  language === "en" ? {} : (await FILES[language]()).default;

/** Keep the choice and draw the page again; what was typed is kept as a draft. */
export function choose(language: Language): void {
  localStorage.setItem(KEPT, language);
  location.reload();
}
