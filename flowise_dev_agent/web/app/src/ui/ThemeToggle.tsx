import { useEffect, useState } from "react";
import { t } from "../i18n";
import { chosenTheme, keepTheme, systemTheme } from "./theme";

/** Light or dark theme: the system's until the person chooses. */
export function ThemeToggle() {
  const [chosen, setChosen] = useState(chosenTheme);
  const [preferred, setPreferred] = useState(systemTheme);
  const theme = chosen ?? preferred;

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setPreferred(systemTheme());
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);

  const other = theme === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      className="button plain"
      onClick={() => {
        keepTheme(other);
        setChosen(other);
      }}
    >
      {other === "dark" ? t("Dark") : t("Light")}
      <span className="visually-hidden"> {t("colours")}</span>
    </button>
  );
}
