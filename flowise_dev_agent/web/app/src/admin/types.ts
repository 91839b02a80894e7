/** The service's shapes beside sessions and flows. */
import type { components } from "../api/schema";

type Schemas = components["schemas"];

export type VersionView = Schemas["VersionView"];
export type PatternView = Schemas["PatternView"];
export type InstanceView = Schemas["InstanceView"];
export type KnowledgeView = Schemas["KnowledgeView"];
export type RefreshView = Schemas["RefreshView"];
export type DeliveryView = Schemas["ListedDeliveryView"];
export type PublicSettings = Schemas["PublicSettings"];
