/** The words of the page. A key is the English text itself; the other languages have a file each. */
import i18next from "i18next";
import english from "./en.json";
import { cataloguesOf, known, type Language } from "./language";

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
  if (language !== "en") {
    const { words, texts } = await cataloguesOf(language);
    i18next.addResourceBundle(language, "translation", words);
    i18next.addResourceBundle(language, "texts", texts);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}

export const language = (): Language => known(i18next.language) ?? "en";

/** A title inside of a sentence: German nouns stay as they are. */
export const inSentence = (title: string): string => (language() === "de" ? title : title.toLowerCase());

/** The text in the person's language; a text that no file has is shown as it is. */
export const t = (text: string, values?: Record<string, string | number>): string => i18next.t(text, values ?? {});
