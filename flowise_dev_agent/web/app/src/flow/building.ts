/** Building a flow by hand: what fits where, and the ops of each step. */
import { createContext } from "react";
import type { CanvasEdge, CanvasNode, Finding } from "../api/types";
import type { Values } from "../ui/form/schema";
import type { Edit } from "./edits";

type Port = CanvasNode["inputs"][number];

/** The place for which a node is looked for. */
export type Place =
  | { kind: "input"; node: CanvasNode; port: Port }
  | { kind: "output"; node: CanvasNode; port: Port }
  | { kind: "line"; edge: CanvasEdge }
  | { kind: "replace"; node: CanvasNode }
  | { kind: "free" };

export interface Building {
  /** Ask the person what goes there. */
  ask: (place: Place) => void;
  nodes: CanvasNode[];
  edges: CanvasEdge[];
  /** By the id of their node. */
  findings: Map<string, Finding[]>;
  duplicate: (node: CanvasNode) => void;
  copy: (node: CanvasNode) => void;
}

/** Null where a flow is only looked at. */
export const BuildingContext = createContext<Building | null>(null);

export const isStep = (node: CanvasNode): boolean => node.kind === "agent" || node.kind === "iteration";

/** The classes of a port: they end its id. */
export const classesOf = (port: Port): string[] =>
  port.id
    .slice(port.id.lastIndexOf("-") + 1)
    .split("|")
    .map((one) => one.trim());

/** True for an output that may be connected to an input. */
export function fits(from: CanvasNode, output: Port, to: CanvasNode, input: Port): boolean {
  if (from.id === to.id || from.kind === "note" || to.kind === "note") return false;
  if (isStep(from) || isStep(to)) return isStep(from) && isStep(to) && to.name !== "startAgentflow";
  const given = new Set(classesOf(output));
  return classesOf(input).some((one) => given.has(one));
}

/** The op that connects or cuts an output and an input. */
export function lineOf(
  op_type: "Connect" | "Disconnect",
  from: CanvasNode,
  output: Port,
  to: string,
  input: string,
): Edit {
  return {
    op_type,
    source_node_id: from.id,
    ...(from.outputs.length > 1 && output.name && { source_anchor: output.name }),
    target_node_id: to,
    target_anchor: input,
  };
}

/** The op that cuts a line of the picture. */
export const cut = ({ source, output, target, input }: CanvasEdge): Edit => ({
  op_type: "Disconnect",
  source_node_id: source,
  ...(output && { source_anchor: output }),
  target_node_id: target,
  target_anchor: input,
});

/** The ops that put a new node of a type at a place. */
export function placed(place: Place, name: string, id: string, nodes: CanvasNode[]): Edit[] {
  const added: Edit = { op_type: "AddNode", node_name: name, node_id: id };
  switch (place.kind) {
    case "input":
      return [
        added,
        { op_type: "Connect", source_node_id: id, target_node_id: place.node.id, target_anchor: place.port.name },
      ];
    case "output":
      return [added, lineOf("Connect", place.node, place.port, id, "")];
    case "line": {
      const { source, output, target, input } = place.edge;
      const parent = nodes.find((one) => one.id === source)?.parent;
      return [
        added,
        ...(parent ? [{ op_type: "SetParent" as const, node_id: id, parent_id: parent }] : []),
        cut(place.edge),
        {
          op_type: "Connect",
          source_node_id: source,
          ...(output && { source_anchor: output }),
          target_node_id: id,
          target_anchor: "",
        },
        { op_type: "Connect", source_node_id: id, target_node_id: target, target_anchor: input },
      ];
    }
    case "replace":
      return [{ op_type: "ReplaceNode", node_id: place.node.id, node_name: name }];
    default:
      return [added];
  }
}

const COPIED = "flowise-dev-agent-copied";

interface Copied {
  name: string;
  label: string;
  params: Values;
}

export const keepCopied = (copied: Copied): void => localStorage.setItem(COPIED, JSON.stringify(copied));

export function copied(): Copied | null {
  try {
    return JSON.parse(localStorage.getItem(COPIED) ?? "null") as Copied | null;
  } catch {
    return null;
  }
}

/** A copy of settings without credentials, which stay with their node. */
export function withoutCredentials(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutCredentials);
  if (typeof value !== "object" || value === null) return value;
  const own = Object.entries(value).filter(([name]) => name !== "FLOWISE_CREDENTIAL_ID" && name !== "credential");
  return Object.fromEntries(own.map(([name, one]) => [name, withoutCredentials(one)]));
}
