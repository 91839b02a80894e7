/** The service's shapes, by the names of its OpenAPI document (`schema.ts` is generated from it by `make web`). */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type SessionView = Schemas["SessionView"];
export type SessionPage = Schemas["SessionPage"];
export type SessionEvent = Schemas["SessionEvent"];
export type StartSession = Schemas["StartSession"];
