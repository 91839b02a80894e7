import { useEffect, useState } from "react";
import { t } from "../i18n";

const KEPT = "flowise-dev-agent-theme";
type Theme = "light" | "dark";

const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** Light or dark theme: the system's until the person chooses. */
export function ThemeToggle() {
  const [chosen, setChosen] = useState<Theme | null>(() => localStorage.getItem(KEPT) as Theme | null);
  const [preferred, setPreferred] = useState<Theme>(system);
  const theme = chosen ?? preferred;

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setPreferred(system());
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
        localStorage.setItem(KEPT, other);
        setChosen(other);
      }}
    >
      {other === "dark" ? t("Dark") : t("Light")}
      <span className="visually-hidden"> {t("colours")}</span>
    </button>
  );
}
