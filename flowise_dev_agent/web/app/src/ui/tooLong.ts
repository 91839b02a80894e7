import { t } from "../i18n";

/** What the service accepts; longer text is refused with the number, never cut. */
const MOST_CHARACTERS = 32_000;

/** What is wrong with the length of a text; empty when nothing is. */
export const tooLong = (text: string, most = MOST_CHARACTERS): string =>
  text.length > most
    ? t("The text has {{length}} characters; at most {{most}} are possible.", { length: text.length, most })
    : "";
