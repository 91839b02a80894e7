/** Light or dark: the system's until the person chooses. */
const KEPT = "flowise-dev-agent-theme";
export type Theme = "light" | "dark";

export const systemTheme = (): Theme => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
export const chosenTheme = (): Theme | null => localStorage.getItem(KEPT) as Theme | null;
export const preferredTheme = (): Theme => chosenTheme() ?? systemTheme();
export const keepTheme = (theme: Theme): void => localStorage.setItem(KEPT, theme);
