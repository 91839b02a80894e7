/** Small flows for tests. */
import type { CanvasEdge, CanvasNode, CanvasView, FlowChange } from "../api/types";
import { bareNode } from "./layout";

export const node = (id: string, more: Partial<CanvasNode> = {}): CanvasNode =>
  bareNode(id, id.replace(/_\d+$/, ""), { label: id, category: "Chains", version: "1", ...more });

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
    settings: [],
    ...more.diff,
  };
  const names = { before_label: "before", after_label: "after", before_name: null, after_name: null };
  return { before: null, after: null, ...names, ops: [], ...more, diff };
}
