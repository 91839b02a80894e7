import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, Route, Router, Switch, useLocation } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { t } from "./i18n";
import { KeyDialog } from "./ui/KeyDialog";
import { LanguageMenu } from "./ui/LanguageMenu";
import { useNotices } from "./ui/notices";
import { Person } from "./ui/Person";
import { ThemeToggle } from "./ui/ThemeToggle";

interface View {
  path: string;
  /** Its entry in the navigation; views without one are reached by links. */
  title?: string;
  view: ComponentType<{ params: Record<string, string> }>;
}

const Sessions = lazy(() => import("./sessions/SessionsPage").then((module) => ({ default: module.SessionsPage })));
const Build = lazy(() => import("./sessions/BuildPage").then((module) => ({ default: module.BuildPage })));
const Session = lazy(() => import("./session/SessionPage").then((module) => ({ default: module.SessionPage })));
const Flow = lazy(() => import("./flow/FlowPage").then((module) => ({ default: module.FlowPage })));
const History = lazy(() => import("./flow/HistoryPage").then((module) => ({ default: module.HistoryPage })));
const Patterns = lazy(() => import("./admin/PatternsView").then((module) => ({ default: module.PatternsView })));
const Instances = lazy(() => import("./admin/InstancesView").then((module) => ({ default: module.InstancesView })));
const Knowledge = lazy(() => import("./admin/KnowledgeView").then((module) => ({ default: module.KnowledgeView })));
const Webhooks = lazy(() => import("./admin/WebhooksView").then((module) => ({ default: module.WebhooksView })));
const Settings = lazy(() => import("./admin/SettingsView").then((module) => ({ default: module.SettingsView })));
const Reference = lazy(() => import("./admin/ReferenceView").then((module) => ({ default: module.ReferenceView })));

const Palette = lazy(() => import("./ui/Palette").then((module) => ({ default: module.Palette })));

/** Paths are behind the `#`, because the service's own paths are its API. */
const VIEWS: View[] = [
  { path: "/", title: "Home", view: Sessions },
  { path: "/s/:id", view: Session },
  { path: "/build", view: Build },
  { path: "/build/:id", view: Build },
  { path: "/f/:id/:instance?", view: Flow },
  { path: "/f/:id/:instance/:action", view: Flow },
  { path: "/history/:id", view: History },
  { path: "/patterns", title: "Patterns", view: Patterns },
  { path: "/instances", title: "Instances", view: Instances },
  { path: "/knowledge", title: "Knowledge", view: Knowledge },
  { path: "/webhooks", title: "Webhooks", view: Webhooks },
  { path: "/settings", title: "Settings", view: Settings },
  { path: "/api", title: "API", view: Reference },
];

/** Not a link to `#main`, because what follows the `#` is a path. */
const focusContent = () => document.getElementById("main")?.focus();

/** The frame around every view: name, navigation, theme, and the dialog for the key. */
export function App() {
  useNotices();
  return (
    <Router hook={useHashLocation}>
      <button type="button" className="button skip" onClick={focusContent}>
        {t("Skip to content")}
      </button>
      <header className="page-top">
        <Link href="/" className="brand">
          {t("Flowise Dev Agent")}
        </Link>
        <Navigation />
        <Finder />
        <Person />
        <LanguageMenu />
        <ThemeToggle />
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<p className="quiet">{t("Loading…")}</p>}>
          <Switch>
            {VIEWS.map(({ path, view: View }) => (
              <Route key={path} path={path}>
                {(params) => <View params={params as Record<string, string>} />}
              </Route>
            ))}
            <Route>
              <h1>{t("Page not found")}</h1>
              <p>
                <Link href="/">{t("Sessions")}</Link>
              </p>
            </Route>
          </Switch>
        </Suspense>
      </main>
      <KeyDialog />
    </Router>
  );
}

/** The button of the command palette, and its keys. */
function Finder() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      // Nothing is over a dialog that needs an answer.
      if (document.querySelector("dialog[open]:not(.palette)")) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  const views = VIEWS.flatMap(({ path, title }) => (title ? [{ path, title: t(title) }] : []));
  return (
    <>
      <button type="button" className="button plain finder-button" onClick={() => setOpen(true)}>
        {t("Go to")} <kbd>Ctrl K</kbd>
      </button>
      {open && (
        <Suspense>
          <Palette views={views} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

function Navigation() {
  const nav = useRef<HTMLElement>(null);
  const [location] = useLocation();
  // On a phone the navigation is wider than the window; keep the current view visible.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the class depends on the location
  useEffect(() => {
    nav.current?.querySelector(".current")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [location]);
  return (
    <nav ref={nav} aria-label={t("Main")}>
      {VIEWS.filter((one) => one.title).map((one) => (
        <Link key={one.path} href={one.path} className={(active) => (active ? "nav current" : "nav")}>
          {t(one.title ?? "")}
        </Link>
      ))}
    </nav>
  );
}
