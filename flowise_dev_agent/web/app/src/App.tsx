import { lazy, Suspense, useEffect, useState } from "react";
import { createPortal } from "react-dom";
import { Link, Route, Router, Switch } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { IconsContext } from "./flow/iconsContext";
import { t } from "./i18n";
import { KeyDialog } from "./ui/KeyDialog";
import { LanguageMenu } from "./ui/LanguageMenu";
import { useNotices } from "./ui/notices";
import { Person } from "./ui/Person";
import { ThemeToggle } from "./ui/ThemeToggle";
import { loaded, PLACES, type Place, placeOf } from "./views";

const Palette = lazy(() => import("./ui/Palette").then((module) => ({ default: module.Palette })));

/** Not a link to `#main`, because what follows the `#` is a path. */
const focusContent = () => document.getElementById("main")?.focus();

export function App() {
  const [path] = useHashLocation();
  const found = placeOf(path);
  return found?.place.alone ? <Alone place={found.place} params={found.params} /> : <Frame />;
}

/** A view for people without a key: nothing else can be reached from it. */
function Alone({ place, params }: { place: Place; params: Record<string, string> }) {
  return (
    <>
      <button type="button" className="button skip" onClick={focusContent}>
        {t("Skip to content")}
      </button>
      <header className="page-top">
        <span className="brand">{t("Flowise Dev Agent")}</span>
        <LanguageMenu />
        <ThemeToggle />
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<p className="quiet">{t("Loading…")}</p>}>
          <Shown place={place} params={params} />
        </Suspense>
      </main>
    </>
  );
}

/** The frame around every view: name, navigation, theme, and the dialog for the key. */
function Frame() {
  useNotices();
  return (
    <IconsContext value={true}>
      <Router hook={useHashLocation}>
        <button type="button" className="button skip" onClick={focusContent}>
          {t("Skip to content")}
        </button>
        <header className="page-top">
          <Link href="/" className="brand">
            {t("Flowise Dev Agent")}
          </Link>
          <button type="button" className="button plain menu-button" popoverTarget="menu">
            {t("Menu")}
          </button>
          {/* Part of the bar where there is room for it. */}
          <div id="menu" className="menu" popover="auto">
            <Navigation />
            <Finder />
            <Person />
            <LanguageMenu />
            <ThemeToggle />
          </div>
        </header>
        <main id="main" tabIndex={-1}>
          <Suspense fallback={<p className="quiet">{t("Loading…")}</p>}>
            <Switch>
              {PLACES.map((place) => (
                <Route key={place.path} path={place.path}>
                  {(params) => <Shown place={place} params={params as Record<string, string>} />}
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
    </IconsContext>
  );
}

/** A view: at once when it has been loaded before, so that nothing else is seen meanwhile. */
function Shown({ place, params }: { place: Place; params: Record<string, string> }) {
  const [View] = useState(() => place.view ?? lazy(async () => ({ default: await loaded(place) })));
  return <View params={params} />;
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
  const views = PLACES.flatMap(({ path, title }) => (title ? [{ path, title: t(title) }] : []));
  return (
    <>
      <button type="button" className="button plain finder-button" onClick={() => setOpen(true)}>
        {t("Go to")} <kbd>Ctrl K</kbd>
      </button>
      {/* Not in the menu, which may be closed by then. */}
      {open &&
        createPortal(
          <Suspense>
            <Palette views={views} onClose={() => setOpen(false)} />
          </Suspense>,
          document.body,
        )}
    </>
  );
}

function Navigation() {
  // Whoever has chosen needs the menu no more.
  const close = () => {
    const menu = document.getElementById("menu");
    if (menu?.matches(":popover-open")) menu.hidePopover();
  };
  return (
    <nav aria-label={t("Main")}>
      {PLACES.filter((one) => one.title).map((one) => (
        <Link key={one.path} href={one.path} onClick={close} className={(active) => (active ? "nav current" : "nav")}>
          {t(one.title ?? "")}
        </Link>
      ))}
    </nav>
  );
}
