import { t } from "../i18n";

/** What the service accepts; longer text is refused with the number, never cut. */
const MOST_CHARACTERS = 32_000;

/** What is wrong with the length of a text; empty when nothing is. */
export const tooLong = (text: string, most = MOST_CHARACTERS): string =>
  text.length > most
    ? t("The text has {{length}} characters; at most {{most}} are possible.", { length: text.length, most })
    : "";

/** Of what is searched for. */
export const MOST_SEARCHED = 200;

/** The words to search for: none while there are more than can be searched for. */
export const searched = (text: string): string => (tooLong(text, MOST_SEARCHED) ? "" : text.trim());
