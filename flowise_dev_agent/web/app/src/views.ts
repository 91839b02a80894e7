/** The views of the page: where each one is, and what it needs first. */
import type { ComponentType } from "react";

type View = ComponentType<{ params: Record<string, string> }>;

export interface Place {
  /** Behind the `#`, because the service's own paths are its API. */
  path: string;
  /** Its entry in the navigation; views without one are reached by links. */
  title?: string;
  load: () => Promise<View>;
  /** What it asks the service for at once, by the parts of its path. */
  asks?: (params: Record<string, string>) => string[];
  /** For people without a key: without the frame, and nothing is asked with one. */
  alone?: boolean;
  /** Its component, once it has been loaded. */
  view?: View;
}

const Flow = () => import("./flow/FlowPage").then((module) => module.FlowPage);

const ofHome = () => [
  "/health",
  "/info",
  "/sessions/expected-cost",
  "/flows?limit=12&pictures=true",
  "/sessions?limit=6&status=pending_interrupt",
  "/sessions?limit=20",
];
const ofSession = ({ id }: Record<string, string>) => [`/sessions/${id}`, `/sessions/${id}/turns`];
const ofFlow = ({ id, instance }: Record<string, string>) => {
  const on = instance ? `instance=${instance}&` : "";
  return [`/flows/${id}/graph?${on}params=true`, `/flows/${id}/conversation?${on}limit=10`];
};

export const PLACES: Place[] = [
  {
    path: "/",
    title: "Home",
    load: () => import("./sessions/SessionsPage").then((module) => module.SessionsPage),
    asks: ofHome,
  },
  {
    path: "/s/:id",
    load: () => import("./session/SessionPage").then((module) => module.SessionPage),
    asks: ofSession,
  },
  { path: "/new", load: () => import("./flow/FlowPage").then((module) => module.NewFlowPage) },
  { path: "/f/:id/:instance?", load: Flow, asks: ofFlow },
  { path: "/f/:id/:instance/:action", load: Flow, asks: ofFlow },
  { path: "/history/:id", load: () => import("./flow/HistoryPage").then((module) => module.HistoryPage) },
  { path: "/fleet", title: "Flows", load: () => import("./flow/FleetPage").then((module) => module.FleetPage) },
  {
    path: "/patterns",
    title: "Patterns",
    load: () => import("./admin/PatternsView").then((module) => module.PatternsView),
  },
  {
    path: "/instances",
    title: "Instances",
    load: () => import("./admin/InstancesView").then((module) => module.InstancesView),
  },
  {
    path: "/knowledge",
    title: "Knowledge",
    load: () => import("./admin/KnowledgeView").then((module) => module.KnowledgeView),
  },
  {
    path: "/webhooks",
    title: "Webhooks",
    load: () => import("./admin/WebhooksView").then((module) => module.WebhooksView),
  },
  {
    path: "/settings",
    title: "Settings",
    load: () => import("./admin/SettingsView").then((module) => module.SettingsView),
  },
  {
    path: "/shared/:token",
    load: () => import("./share/SharedPage").then((module) => module.SharedPage),
    alone: true,
  },
  { path: "/api", title: "API", load: () => import("./admin/ReferenceView").then((module) => module.ReferenceView) },
];

/** The place that an address shows, with the parts of its path. */
export function placeOf(hash: string): { place: Place; params: Record<string, string> } | null {
  const parts =
    hash
      .replace(/^#?\/?/, "")
      .split("?")[0]
      ?.split("/") ?? [];
  for (const place of PLACES) {
    const wanted = place.path.slice(1).split("/");
    const fits =
      parts.length <= wanted.length &&
      wanted.every((part, index) =>
        part.startsWith(":") ? parts[index] || part.endsWith("?") : part === parts[index],
      );
    if (fits)
      return {
        place,
        params: Object.fromEntries(wanted.map((part, index) => [part.replace(/[:?]/g, ""), parts[index] ?? ""])),
      };
  }
  return null;
}

/** Load the component of a place, and remember it. */
export async function loaded(place: Place): Promise<View> {
  place.view ??= await place.load();
  return place.view;
}
