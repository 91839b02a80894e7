/** Building a flow by hand: what fits where, and the ops of each step. */
import { createContext } from "react";
import type { CanvasEdge, CanvasNode, Finding } from "../api/types";
import { t } from "../i18n";
import type { Values } from "../ui/form/schema";
import { type Edit, freeId } from "./edits";
import { branchOf } from "./layout";

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
  /** Show the details of a node. */
  choose: (id: string) => void;
  /** A step that leads back to an earlier one. */
  goBack: (from: CanvasNode, output: Port, to: CanvasNode) => void;
  duplicate: (nodes: CanvasNode[]) => void;
  copy: (nodes: CanvasNode[]) => void;
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

/** True if a line between two steps would make a circle: a flow goes back by a step for it. */
export function leadsBack({ edges }: Pick<Building, "edges">, from: CanvasNode, to: CanvasNode): boolean {
  if (!isStep(from) || !isStep(to) || from.id === to.id) return false;
  const reached = new Set([to.id]);
  for (const id of reached) for (const edge of edges) if (edge.source === id) reached.add(edge.target);
  return reached.has(from.id);
}

/** The words at a port; "" where a step has one way in or out only. */
export const portName = (node: CanvasNode, side: "inputs" | "outputs", index: number): string =>
  (side === "outputs" && branchOf(node, index)) || (isStep(node) ? "" : (node[side][index]?.label ?? ""));

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
        // Of a step with several ends it is the first.
        { op_type: "Connect", source_node_id: id, source_anchor: "0", target_node_id: target, target_anchor: input },
      ];
    }
    case "replace":
      return [{ op_type: "ReplaceNode", node_id: place.node.id, node_name: name }];
    default:
      return [added];
  }
}

const COPIED = "flowise-dev-agent-copied";

/** Nodes with their settings, and the lines between them. */
export interface Copied {
  nodes: (Pick<CanvasNode, "id" | "name" | "label" | "x" | "y"> & { params: Values })[];
  lines: CanvasEdge[];
}

export const keepCopied = (copied: Copied): void => localStorage.setItem(COPIED, JSON.stringify(copied));

export function copied(): Copied | null {
  try {
    const kept = JSON.parse(localStorage.getItem(COPIED) ?? "null") as Copied | null;
    return kept && Array.isArray(kept.nodes) ? kept : null;
  } catch {
    return null;
  }
}

/** How far a copy is from what it was made of. */
const ASIDE = 40;

/** The ops that put copies beside what they were made of, and their ids. */
export function pasted({ nodes, lines }: Copied, taken: string[]): { ops: Edit[]; ids: string[] } {
  const ids = new Map<string, string>();
  for (const { id, name } of nodes) ids.set(id, freeId(name, [...taken, ...ids.values()]));
  const added = nodes.flatMap(({ id, name, label, params, x, y }): Edit[] => {
    const node_id = ids.get(id) ?? id;
    return [
      { op_type: "AddNode", node_name: name, node_id, label: t("{{node}} (copy)", { node: label }), params },
      { op_type: "SetPosition", node_id, x: Math.round(x + ASIDE), y: Math.round(y + ASIDE) },
    ];
  });
  const connected = lines.flatMap(({ source, output, target, input }): Edit[] => {
    const [from, to] = [ids.get(source), ids.get(target)];
    if (!from || !to) return [];
    const anchor = output && { source_anchor: output };
    return [{ op_type: "Connect", source_node_id: from, ...anchor, target_node_id: to, target_anchor: input }];
  });
  return { ops: [...added, ...connected], ids: [...ids.values()] };
}

/** A copy of settings without credentials, which stay with their node. */
export function withoutCredentials(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutCredentials);
  if (typeof value !== "object" || value === null) return value;
  const own = Object.entries(value).filter(([name]) => name !== "FLOWISE_CREDENTIAL_ID" && name !== "credential");
  return Object.fromEntries(own.map(([name, one]) => [name, withoutCredentials(one)]));
}
