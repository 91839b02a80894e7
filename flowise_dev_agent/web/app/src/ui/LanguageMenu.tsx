import { language, t } from "../i18n";
import { choose, LANGUAGES, type Language } from "../i18n/language";

/** The language of the page: the browser's until the person chooses. */
export function LanguageMenu() {
  return (
    <select
      className="language"
      aria-label={t("Language")}
      value={language()}
      onChange={(event) => choose(event.target.value as Language)}
    >
      {Object.entries(LANGUAGES).map(([tag, name]) => (
        <option key={tag} value={tag} lang={tag}>
          {name}
        </option>
      ))}
    </select>
  );
}
