/** Short names for the service's shapes, which are generated from its OpenAPI document. */
import type { components, operations } from "./schema";

type Schemas = components["schemas"];

export type SessionView = Schemas["SessionView"];
export type ListedSession = Schemas["ListedSession"];
export type SessionPage = Schemas["SessionPage"];
export type SessionStatus = SessionView["status"];
export type SessionEvent = Schemas["SessionEvent"];
export type FlowFacts = Schemas["FlowFacts"];
export type Turn = Schemas["Turn"];
export type ConversationSession = Schemas["ConversationSession"];
export type Preview = Schemas["Preview"];
export type FlowPreview = Schemas["FlowPreview"];
export type PreviewNode = Schemas["PreviewNode"];
export type ApprovedPlan = Schemas["ApprovedPlan"];
export type Plan = Schemas["Plan"];
export type Interrupt = Schemas["Interrupt"];
export type InterruptOf<Type extends Interrupt["type"]> = Extract<Interrupt, { type: Type }>;
export type Option = Schemas["Option"];
export type Action = Option["value"];
export type Answer = NonNullable<Schemas["ResumeSession"]["answer"]>;
export type Trial = Schemas["Trial"];
export type Trace = Schemas["Trace"];
export type Verdict = Schemas["Verdict"];
export type Finding = Schemas["Finding"];
export type FlowWriteResult = Schemas["FlowWriteResult"];
/** Its request goes back as it came. */
export interface ReadFlow {
  request: { name: string; type: string | null };
  left_out: string[];
}
export type ListSessions = NonNullable<operations["list_sessions"]["parameters"]["query"]>;
/** Fields with a default are optional in a request. */
export type StartSession = Partial<Schemas["StartSession"]>;
export type DesignForm = NonNullable<Schemas["SessionPlan"]["form"]>;

export type CanvasView = Schemas["CanvasView"];
export type CanvasNode = Schemas["CanvasNode"];
export type CanvasEdge = Schemas["CanvasEdge"];
export type FlowChange = Schemas["FlowChange"];
export type Difference = Schemas["Difference"];
export type PatchOp = FlowChange["ops"][number];
export type FieldChange = Schemas["FieldChange"];
export type FlowReach = Schemas["FlowReach"];
export type ReachChange = Partial<Schemas["ReachChange"]>;
export type ChatAnswer = Schemas["ChatAnswer"];
export type StartForm = Schemas["StartForm"];
export type AttachmentView = Schemas["AttachmentView"];

export type Conflict = Schemas["Conflict"];
export type CreatedCredential = Schemas["CreatedCredential"];
export type CredentialField = Schemas["CredentialFieldView"];
export type HealthView = Schemas["HealthView"];
export type MadeShare = Schemas["MadeShare"];
export type NewShare = Schemas["NewShare"];
export type ShareView = Schemas["ShareView"];
export type SharedView = Schemas["SharedView"];
export type FleetState = Schemas["FleetFlow"]["states"][number];
export type NumberedVersion = Schemas["NumberedVersion"];
export type VersionView = Schemas["VersionView"];
export type PatternFile = Schemas["PatternFile"];
export type PatternView = Schemas["PatternView"];
export type ConnectionsView = Schemas["ConnectionsView"];
export type ConnectModel = Schemas["ConnectModel"];
export type InstanceView = Schemas["InstanceView"];
export type ModelView = Schemas["ModelView"];
export type Memory = Schemas["Memory"];
export type KnowledgeList = Schemas["KnowledgeList"];
export type KnowledgeView = Schemas["KnowledgeView"];
export type RefreshView = Schemas["RefreshView"];
export type DeliveryView = Schemas["ListedDeliveryView"];
export type PublicSettings = Schemas["PublicSettings"];
