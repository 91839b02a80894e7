/** A flow as an indented list: steps in the order in which they run, or the end of a chatflow with what feeds it. */
import type { CanvasEdge, CanvasNode } from "../api/types";
import { isStep } from "./building";
import { branchOf } from "./layout";

export interface OutlineRow {
  node: CanvasNode;
  /** Such as 2, 2a, 2a.1. */
  number: string;
  depth: number;
  /** The branch that begins with it; "" for none. */
  branch: string;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export function outlineOf(nodes: CanvasNode[], edges: CanvasEdge[]): OutlineRow[] {
  const byId = new Map(nodes.filter((one) => one.kind !== "note").map((one) => [one.id, one]));
  const steps = nodes.some(isStep);
  const rows: OutlineRow[] = [];
  const seen = new Set<string>();
  const nextOf = (node: CanvasNode, handle?: string) =>
    edges.flatMap((edge) => {
      const [from, to] = steps ? [edge.source, edge.target] : [edge.target, edge.source];
      const other = byId.get(to);
      return from === node.id && other && (!handle || edge.source_handle === handle) ? [other] : [];
    });
  const visit = (node: CanvasNode, number: string, depth: number, branch: string): CanvasNode[] => {
    if (seen.has(node.id)) return [];
    seen.add(node.id);
    rows.push({ node, number, depth, branch });
    if (!steps) {
      for (const [index, one] of nextOf(node).entries()) visit(one, `${number}.${index + 1}`, depth + 1, "");
      return [];
    }
    const inside = nodes.filter((one) => one.parent === node.id && !edges.some((edge) => edge.target === one.id));
    for (const one of inside) run(one, `${number}.`, depth + 1, "");
    if (node.outputs.length < 2) return nextOf(node);
    for (const [index, port] of node.outputs.entries())
      for (const one of nextOf(node, port.id))
        run(one, `${number}${LETTERS[index] ?? index + 1}`, depth + 1, branchOf(node, index));
    return [];
  };
  /** A step and those behind it, one after the other. */
  const run = (first: CanvasNode, prefix: string, depth: number, branch: string) => {
    let line = [first];
    for (let count = 1; line.length > 0; count += 1) {
      const inBranch = /[a-z]$/.test(prefix);
      const number = inBranch ? (count === 1 ? prefix : `${prefix}.${count}`) : `${prefix}${count}`;
      const [one, ...others] = line.filter((each) => !seen.has(each.id));
      if (!one) return;
      line = visit(one, number, depth, count === 1 ? branch : "");
      for (const [index, other] of others.entries()) run(other, `${number}${LETTERS[index + 1]}`, depth + 1, "");
    }
  };
  const begins = (node: CanvasNode) =>
    !node.parent && !edges.some((edge) => (steps ? edge.target : edge.source) === node.id);
  const all = [...byId.values()];
  let count = 0;
  for (const node of [...all.filter(begins), ...all]) {
    if (seen.has(node.id)) continue;
    if (steps) run(node, count === 0 ? "" : `${count + 1}.`, 0, "");
    else visit(node, String(count + 1), 0, "");
    count += 1;
  }
  return rows;
}
