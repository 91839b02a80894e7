import { type ComponentType, lazy } from "react";

/** A view of the page. Routes live behind the `#`, since the service's own paths are its API. */
export interface View {
  path: string;
  /** Its entry in the navigation; views without one are reached from others. */
  title?: string;
  view: ComponentType<{ params: Record<string, string> }>;
}

const Sessions = lazy(() => import("./sessions/SessionsView").then((module) => ({ default: module.SessionsView })));
const Session = lazy(() => import("./session/SessionPage").then((module) => ({ default: module.SessionPage })));
const Reference = lazy(() => import("./reference/ReferenceView").then((module) => ({ default: module.ReferenceView })));

export const VIEWS: View[] = [
  { path: "/", title: "Sessions", view: Sessions },
  { path: "/s/:id", view: Session },
  { path: "/api", title: "API", view: Reference },
];
