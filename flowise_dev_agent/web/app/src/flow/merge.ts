/** Two states of a flow as one drawing: all of the later state, and removed nodes at their old place. */
import type { CanvasEdge, CanvasNode, CanvasView, FieldChange, FlowChange, Preview } from "../api/types";
import { type Box, boxesOf, paramLabel, rootOf, sizeOf } from "./layout";

const GAP = 32;
const MAX_TRIES = 20;

/** How a node or a connection differs between two states of a flow. */
export type Mark = "same" | "added" | "changed" | "removed" | "moved";

export interface MarkedNode {
  node: CanvasNode;
  mark: Mark;
  /** The same node in the earlier state. */
  before?: CanvasNode;
  /** Changed fields by name or path; values may be shortened. */
  fields: FieldChange[];
  /** It is planned, and not there yet. */
  ghost?: boolean;
}

export interface MarkedEdge {
  edge: CanvasEdge;
  mark: Mark;
  /** Not in the plan; code expects it from the types of the nodes. */
  expected?: boolean;
}

export interface Marked {
  nodes: MarkedNode[];
  edges: MarkedEdge[];
}

/** A single flow, without marks. */
export function unmarked(view: CanvasView): Marked {
  return {
    nodes: view.nodes.map((node) => ({ node, mark: "same", fields: [] })),
    edges: view.edges.map((edge) => ({ edge, mark: "same" })),
  };
}

/** The flow without marks where all of it is new. */
export const calm = (flow: Marked): Marked =>
  flow.nodes.every(({ mark }) => mark === "added")
    ? {
        nodes: flow.nodes.map((one) => ({ ...one, mark: "same" })),
        edges: flow.edges.map((one) => ({ ...one, mark: "same" })),
      }
    : flow;

/** Both states in one, marked by the service's comparison. */
export function merged({ before, after, diff }: FlowChange): Marked {
  const earlier = new Map(before?.nodes.map((node) => [node.id, node]));
  const later = new Set(after?.nodes.map((node) => node.id));
  const changed = new Map(diff.changed.map((change) => [change.id, change.fields]));
  const added = new Set(diff.added.map((node) => node.id));
  const moved = new Set(diff.moved);

  function markOf(id: string): Mark {
    if (added.has(id)) return "added";
    if (changed.has(id)) return "changed";
    return moved.has(id) ? "moved" : "same";
  }

  const nodes: MarkedNode[] = (after?.nodes ?? []).map((node) => {
    const old = earlier.get(node.id);
    const fields = changed.get(node.id) ?? [];
    return { node: changedFirst(node, fields), mark: markOf(node.id), fields, ...(old && { before: old }) };
  });
  const occupied = [...boxesOf(after?.nodes ?? []).values()];
  for (const node of before?.nodes ?? []) {
    if (!later.has(node.id)) nodes.push({ node: placed(node, occupied), mark: "removed", before: node, fields: [] });
  }

  const made = new Set(diff.connected.map(ends));
  const cut = new Set(diff.disconnected.map(ends));
  const edges: MarkedEdge[] = (after?.edges ?? []).map((edge) => ({
    edge,
    mark: made.has(ends(edge)) ? "added" : "same",
  }));
  const drawn = new Set(edges.map(({ edge }) => ends(edge)));
  for (const edge of before?.edges ?? []) {
    if (cut.has(ends(edge)) && !drawn.has(ends(edge)))
      edges.push({ edge: { ...edge, id: `before-${edge.id}` }, mark: "removed" });
  }
  return { nodes: withEarlierPorts(nodes, edges), edges };
}

/** A box shows few of the parameters: those that differ are among them. */
function changedFirst(node: CanvasNode, fields: FieldChange[]): CanvasNode {
  const names = new Set(fields.map(({ name }) => rootOf(name)));
  const rank = ({ name }: CanvasNode["params"][number]) => (names.has(name) ? 0 : 1);
  return names.size > 0 ? { ...node, params: node.params.toSorted((one, other) => rank(one) - rank(other)) } : node;
}

const MARKS: Record<Preview["nodes"][number]["state"], Mark> = {
  existing: "same",
  new: "added",
  changed: "changed",
  removed: "removed",
};

/** The flow that a session makes, with the values that the plan sets. */
export function previewed({ nodes, edges, source }: Preview): Marked {
  const occupied = [...boxesOf(nodes.filter((one) => one.state !== "removed").map((one) => one.node)).values()];
  return {
    nodes: nodes.map(({ node: drawn, state, values, model }) => {
      const node = changedFirst(state === "removed" ? placed(drawn, occupied) : drawn, values);
      const changed = state === "changed";
      const before = values.map(({ name, before: value }) => ({ name, label: paramLabel(name), value, cut: false }));
      return {
        node: { ...node, params: withModel(node.params, model) },
        mark: MARKS[state],
        fields: changed ? values : [],
        ghost: state === "new" && source !== "flow",
        ...(changed && { before: { ...drawn, params: before } }),
      };
    }),
    edges: edges.map(({ edge, state, expected }) => ({ edge, mark: MARKS[state], expected })),
  };
}

const withModel = (params: CanvasNode["params"], model: string): CanvasNode["params"] =>
  !model || params.some((one) => one.value === model)
    ? params
    : [...params, { name: "model", label: paramLabel("model"), value: model, cut: false }];

/** Number of each mark; connections count as added and removed. */
export function counts({ nodes, edges }: Marked): Record<Exclude<Mark, "same">, number> {
  const found = { added: 0, changed: 0, removed: 0, moved: 0 };
  for (const { mark } of [...nodes, ...edges]) if (mark !== "same") found[mark] += 1;
  return found;
}

/** A removed node, moved above the nodes that now cover its place. */
function placed(node: CanvasNode, occupied: Box[]): CanvasNode {
  if (node.parent) return node;
  const size = sizeOf(node);
  let y = node.y;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const covering = occupied.find((box) => overlap(box, { x: node.x, y, ...size }));
    if (!covering) break;
    y = covering.y - size.height - GAP;
  }
  occupied.push({ x: node.x, y, ...size });
  return { ...node, y };
}

const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** Nodes have the ports of the later state; a removed connection may need an earlier port. */
function withEarlierPorts(nodes: MarkedNode[], edges: MarkedEdge[]): MarkedNode[] {
  const needed = edges.filter(({ mark }) => mark === "removed").map(({ edge }) => edge);
  if (needed.length === 0) return nodes;
  return nodes.map((marked) => {
    const { node, before } = marked;
    const missing = (side: "inputs" | "outputs", handles: string[]) => {
      const known = new Set(node[side].map((port) => port.id));
      return (before?.[side] ?? []).filter((port) => handles.includes(port.id) && !known.has(port.id));
    };
    const inputs = missing(
      "inputs",
      needed.filter((edge) => edge.target === node.id).map((edge) => edge.target_handle),
    );
    const outputs = missing(
      "outputs",
      needed.filter((edge) => edge.source === node.id).map((edge) => edge.source_handle),
    );
    if (inputs.length === 0 && outputs.length === 0) return marked;
    return {
      ...marked,
      node: { ...node, inputs: [...node.inputs, ...inputs], outputs: [...node.outputs, ...outputs] },
    };
  });
}

const ends = (edge: { source: string; output: string; target: string; input: string }): string =>
  JSON.stringify([edge.source, edge.output, edge.target, edge.input]);
