/** The languages of the page, and which of them a person reads. */

export const LANGUAGES = { en: "English", de: "Deutsch", fr: "Français", es: "Español" } as const;
export type Language = keyof typeof LANGUAGES;
interface Catalogues {
  /** Texts of the page by their English ones. */
  words: Record<string, string>;
  /** Texts of the service by their codes. */
  texts: Record<string, string>;
}
const FILES: Record<Exclude<Language, "en">, () => Promise<Catalogues>> = {
  de: () => import("./de"),
  fr: () => import("./fr"),
  es: () => import("./es"),
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

/** The texts of a language; none for English, in which the page is written and the service speaks. */
export const cataloguesOf = async (language: Language): Promise<Catalogues> =>
  language === "en" ? { words: {}, texts: {} } : await FILES[language]();

/** Keep the choice and draw the page again; what was typed is kept as a draft. */
export function choose(language: Language): void {
  localStorage.setItem(KEPT, language);
  location.reload();
}
