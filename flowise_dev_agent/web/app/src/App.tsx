import { Suspense, useEffect, useRef } from "react";
import { Link, Route, Router, Switch, useLocation } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { VIEWS } from "./routes";
import { KeyDialog } from "./ui/KeyDialog";
import { ThemeToggle } from "./ui/ThemeToggle";

/** No link to `#main`: what is behind the `#` is a route. */
const toContent = () => document.getElementById("main")?.focus();

/** The frame around every view: name, navigation, theme, and the dialog for the key. */
export function App() {
  return (
    <Router hook={useHashLocation}>
      <button type="button" className="button skip" onClick={toContent}>
        Skip to the content
      </button>
      <header className="top">
        <Link href="/" className="brand">
          Flowise Dev Agent
        </Link>
        <Navigation />
        <ThemeToggle />
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<p className="quiet">Loading the view…</p>}>
          <Switch>
            {VIEWS.map(({ path, view: View }) => (
              <Route key={path} path={path}>
                {(params) => <View params={params as Record<string, string>} />}
              </Route>
            ))}
            <Route>
              <h1>There is no such page</h1>
              <p>
                <Link href="/">Go to the sessions</Link>
              </p>
            </Route>
          </Switch>
        </Suspense>
      </main>
      <KeyDialog />
    </Router>
  );
}

function Navigation() {
  const nav = useRef<HTMLElement>(null);
  const [location] = useLocation();
  // On a phone it is wider than the window: the view that is open stays in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the class follows from the location
  useEffect(() => {
    nav.current?.querySelector(".current")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [location]);
  return (
    <nav ref={nav} aria-label="Main">
      {VIEWS.filter((one) => one.title).map((one) => (
        <Link key={one.path} href={one.path} className={(active) => (active ? "nav current" : "nav")}>
          {one.title}
        </Link>
      ))}
    </nav>
  );
}
