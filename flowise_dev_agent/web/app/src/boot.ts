/**
 * Runs before the page is seen for the first time, and before its program is there: sets language and colours, and sends
 * for everything that the address needs, all at once.
 */
import { begin } from "./api/early";
import { cataloguesOf, preferredLanguage } from "./i18n/language";
import { showToExperts } from "./ui/expert";
import { preferredTheme } from "./ui/theme";
import { loaded, placeOf } from "./views";
import "./theme.css";
import "./ui/ui.css";
import "./sessions/sessions.css";

// A part of this page that a newer service no longer has: the new page has its own. What is missing straight after a
// reload, too, is out of reach, and another one would not end.
addEventListener("vite:preloadError", () => {
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const anew = navigation?.type === "reload" && performance.now() < 60_000;
  if (navigator.onLine && !anew) location.reload();
});

const language = preferredLanguage();
const found = placeOf(location.hash);
Object.assign(document.documentElement, { lang: language });
showToExperts();
Object.assign(document.documentElement.dataset, { theme: preferredTheme(), place: found?.place.path ?? "" });
if (!found?.place.alone)
  for (const path of ["/keys/current", ...(found?.place.asks?.(found.params) ?? [])]) begin(path);

const program = import("./main");
void Promise.all([found && loaded(found.place), cataloguesOf(language)]).then(async () =>
  (await program).draw(language),
);
