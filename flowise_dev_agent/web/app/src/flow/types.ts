/** The service's shapes of flows. */
import type { components } from "../api/schema";

type Schemas = components["schemas"];

export type Picture = Schemas["Picture"];
export type PictureNode = Schemas["PictureNode"];
export type PictureEdge = Schemas["PictureEdge"];
export type FlowChange = Schemas["FlowChange"];
export type SessionChange = Schemas["SessionChange"];
export type Difference = Schemas["Difference"];
export type FieldChange = Schemas["FieldChange"];
export type FlowFacts = Schemas["FlowFacts"];
export type FlowView = Schemas["FlowView"];

/** What became of a node or a connection between two states of a flow. */
export type Mark = "same" | "added" | "changed" | "removed" | "moved";
export type ChatAnswer = Schemas["ChatAnswer"];
