/** The service's shapes, by the names of its OpenAPI document (`schema.d.ts` is generated from it). */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type SessionView = Schemas["SessionView"];
export type SessionPage = Schemas["SessionPage"];
export type SessionSummary = Schemas["SessionSummary"];
export type SessionStatus = SessionView["status"];
export type SessionEvent = Schemas["SessionEvent"];
export type PlanView = Schemas["PlanView"];
export type FlowPage = Schemas["FlowPage"];
export type InterruptView = Schemas["InterruptView"];
export type StartSession = Pick<Schemas["StartSession"], "requirement"> & Partial<Schemas["StartSession"]>;

/** An answer to an interrupt, as its `response_schema` describes it. */
export type Answer = { action: string } & Record<string, unknown>;
