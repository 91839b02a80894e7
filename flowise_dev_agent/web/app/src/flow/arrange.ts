/** The compact layout of a flow, from left to right. */
import { Graph, layout } from "@dagrejs/dagre";
import type { CanvasNode } from "../api/types";
import { sizeOf } from "./layout";

const RANK_GAP = 100;
const NODE_GAP = 28;

/**
 * The same nodes at compact positions. Notes lie in a row above the flow, and what is inside an iteration keeps its
 * place in it.
 */
export function arranged(nodes: CanvasNode[], edges: { source: string; target: string }[]): CanvasNode[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const outermost = (id: string): string | null => {
    let node = byId.get(id);
    for (let depth = 0; node && depth < nodes.length; depth += 1) {
      const parent = byId.get(node.parent);
      if (!parent) return node.id;
      node = parent;
    }
    return null;
  };
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", ranksep: RANK_GAP, nodesep: NODE_GAP });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) if (!node.parent && node.kind !== "note") graph.setNode(node.id, { ...sizeOf(node) });
  for (const edge of edges) {
    const [source, target] = [outermost(edge.source), outermost(edge.target)];
    if (source && target && source !== target && graph.hasNode(source) && graph.hasNode(target))
      graph.setEdge(source, target);
  }
  layout(graph);
  fold(graph);
  let noteX = 0;
  return nodes.map((node) => {
    if (graph.hasNode(node.id)) {
      const { x, y } = graph.node(node.id) as { x: number; y: number };
      const { width, height } = sizeOf(node);
      return { ...node, x: x - width / 2, y: y - height / 2 };
    }
    if (node.parent) return node;
    const { width, height } = sizeOf(node);
    const placed = { ...node, x: noteX, y: -height - RANK_GAP };
    noteX += width + NODE_GAP;
    return placed;
  });
}

/** Width for each pixel of height from which a flow is a line that is too long to read at once. */
const LINE = 5;
const LONG = 1_500;

/** A long line goes on in a second row. */
function fold(graph: Graph): void {
  const { width = 0, height = 0 } = graph.graph();
  if (width < LONG || width < LINE * height) return;
  const at = (id: string) => graph.node(id) as { x: number; y: number; width: number };
  const behind = graph.nodes().filter((id) => at(id).x > width / 2);
  const left = Math.min(...behind.map((id) => at(id).x - at(id).width / 2));
  for (const id of behind) {
    const node = at(id);
    node.x -= left;
    node.y += height + RANK_GAP;
  }
}
