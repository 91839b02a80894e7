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
const Flow = lazy(() => import("./flow/FlowPage").then((module) => ({ default: module.FlowPage })));
const Change = lazy(() => import("./flow/FlowPage").then((module) => ({ default: module.ChangePage })));
const Versions = lazy(() => import("./admin/VersionsView").then((module) => ({ default: module.VersionsView })));
const History = lazy(() => import("./admin/VersionsView").then((module) => ({ default: module.HistoryView })));
const Patterns = lazy(() => import("./admin/PatternsView").then((module) => ({ default: module.PatternsView })));
const Instances = lazy(() => import("./admin/InstancesView").then((module) => ({ default: module.InstancesView })));
const Knowledge = lazy(() => import("./admin/KnowledgeView").then((module) => ({ default: module.KnowledgeView })));
const Webhooks = lazy(() => import("./admin/WebhooksView").then((module) => ({ default: module.WebhooksView })));
const Settings = lazy(() => import("./admin/SettingsView").then((module) => ({ default: module.SettingsView })));
const Reference = lazy(() => import("./reference/ReferenceView").then((module) => ({ default: module.ReferenceView })));

export const VIEWS: View[] = [
  { path: "/", title: "Sessions", view: Sessions },
  { path: "/s/:id", view: Session },
  { path: "/change/:id", view: Change },
  { path: "/flow/:instance/:id", view: Flow },
  { path: "/versions/:id", view: Versions },
  { path: "/history/:id", view: History },
  { path: "/patterns", title: "Patterns", view: Patterns },
  { path: "/instances", title: "Instances", view: Instances },
  { path: "/knowledge", title: "Knowledge", view: Knowledge },
  { path: "/webhooks", title: "Webhooks", view: Webhooks },
  { path: "/settings", title: "Settings", view: Settings },
  { path: "/api", title: "API", view: Reference },
];
