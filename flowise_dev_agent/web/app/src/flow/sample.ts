/** Small flows for tests. */
import type { CanvasEdge, CanvasNode, CanvasView, FlowChange } from "../api/types";

export function node(id: string, more: Partial<CanvasNode> = {}): CanvasNode {
  return {
    id,
    name: id.replace(/_\d+$/, ""),
    label: id,
    category: "Chains",
    kind: "node",
    version: "1",
    color: "",
    parent: "",
    x: 0,
    y: 0,
    width: null,
    height: null,
    inputs: [],
    outputs: [],
    credential: "",
    note: "",
    params: [],
    ...more,
  };
}

export function edge(source: string, target: string, input = "model"): CanvasEdge {
  return {
    id: `${source}-${target}`,
    source,
    source_handle: `${source}-out`,
    output: "",
    target,
    target_handle: `${target}-${input}`,
    input,
    label: "",
  };
}

export const canvas = (nodes: CanvasNode[], edges: CanvasEdge[] = []): CanvasView => ({
  kind: "CHATFLOW",
  nodes,
  edges,
  cut: false,
});

export function change(more: Partial<Omit<FlowChange, "diff">> & { diff?: Partial<FlowChange["diff"]> }): FlowChange {
  const diff = {
    summary: "",
    text: "",
    added: [],
    removed: [],
    changed: [],
    connected: [],
    disconnected: [],
    moved: [],
    ...more.diff,
  };
  return { before: null, after: null, before_label: "before", after_label: "after", ops: [], ...more, diff };
}
