/** The service's shapes of flows. */
import type { components } from "../api/schema";

type Schemas = components["schemas"];

export type CanvasView = Schemas["CanvasView"];
export type CanvasNode = Schemas["CanvasNode"];
export type CanvasEdge = Schemas["CanvasEdge"];
export type FlowChange = Schemas["FlowChange"];
export type SessionChange = Schemas["SessionChange"];
export type Difference = Schemas["Difference"];
export type FieldChange = Schemas["FieldChange"];
export type FlowFacts = Schemas["FlowFacts"];
export type FlowView = Schemas["FlowView"];

/** What became of a node or a connection between two states of a flow. */
export type Mark = "same" | "added" | "changed" | "removed" | "moved";
export type ChatAnswer = Schemas["ChatAnswer"];
