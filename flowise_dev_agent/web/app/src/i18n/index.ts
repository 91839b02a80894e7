/** The words of the page. A key is the English text itself; the other languages have a file each. */
import i18next from "i18next";
import english from "./en.json";

export const LANGUAGES = { en: "English", de: "Deutsch", fr: "Français", es: "Español" } as const;
export type Language = keyof typeof LANGUAGES;
const KEPT = "flowise-dev-agent-language";
const FILES: Record<Exclude<Language, "en">, () => Promise<{ default: Record<string, string> }>> = {
  de: () => import("./de.json"),
  fr: () => import("./fr.json"),
  es: () => import("./es.json"),
};

const known = (tag: string | null | undefined): Language | null => {
  const language = tag?.slice(0, 2).toLowerCase() ?? "";
  return language in LANGUAGES ? (language as Language) : null;
};

/** The person's choice, else the first language of the browser that the page speaks, else English. */
export function preferredLanguage(): Language {
  return known(localStorage.getItem(KEPT)) ?? navigator.languages.map(known).find((one) => one !== null) ?? "en";
}

void i18next.init({
  lng: "en",
  resources: { en: { translation: english } },
  fallbackLng: "en",
  keySeparator: false,
  nsSeparator: false,
  initAsync: false,
  interpolation: { escapeValue: false },
});

/** Load the language before the page is drawn. */
export async function speak(language: Language): Promise<void> {
  if (language !== "en") i18next.addResourceBundle(language, "translation", (await FILES[language]()).default);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}

/** Keep the choice and draw the page again; what was typed is kept as a draft. */
export function choose(language: Language): void {
  localStorage.setItem(KEPT, language);
  location.reload();
}

export const language = (): Language => known(i18next.language) ?? "en";

/** The text in the person's language; a text that no file has is shown as it is. */
export const t = (text: string, values?: Record<string, string | number>): string => i18next.t(text, values ?? {});
