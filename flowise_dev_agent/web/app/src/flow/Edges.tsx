/** The connections of a flow. Nothing can be done with them here, so none of them listens to the canvas. */
import { getBezierPath, Position, ViewportPortal } from "@xyflow/react";
import { memo } from "react";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { isStep, type Place } from "./building";
import { type Box, backTo, boxesOf, isBranching, portTop } from "./layout";
import { SIGNS } from "./MarkBadge";
import type { Marked, MarkedEdge } from "./merge";

/** One drawing below the nodes, made again only when the flow changes. What leads where is in the nodes' own names. */
export const Edges = memo(function Edges({ nodes, edges }: Marked) {
  const byId = new Map(nodes.map(({ node }) => [node.id, node]));
  const boxes = boxesOf([...byId.values()]);
  const back = [...byId.values()].flatMap((node) => {
    const to = backTo(node, byId.values());
    const [start, end] = [boxes.get(node.id), to && boxes.get(to.id)];
    return start && end ? [{ id: node.id, path: wayBack(start, end) }] : [];
  });
  // Changes are drawn over what stays.
  const ordered = edges.toSorted((one, other) => Number(one.mark !== "same") - Number(other.mark !== "same"));
  return (
    <ViewportPortal>
      <svg className="edges" aria-hidden="true">
        {ordered.map((one) => {
          const { source, target } = one.edge;
          const [from, to] = [byId.get(source), byId.get(target)];
          const [start, end] = [boxes.get(source), boxes.get(target)];
          return from && to && start && end ? <Edge key={one.edge.id} {...one} {...{ from, to, start, end }} /> : null;
        })}
        {back.map(({ id, path }) => (
          <g key={`back ${id}`} className="way-back">
            <path d={path} markerEnd="url(#way-back)" />
          </g>
        ))}
        <marker id="way-back" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="9" markerHeight="9" orient="auto">
          <path d="M0 0L8 4L0 8z" />
        </marker>
      </svg>
    </ViewportPortal>
  );
});

/** A button on each line between two steps: a step can go in between. */
export function LineButtons({ nodes, edges, onAsk }: Marked & { onAsk: (place: Place) => void }) {
  const byId = new Map(nodes.map(({ node }) => [node.id, node]));
  const boxes = boxesOf([...byId.values()]);
  return (
    <ViewportPortal>
      {edges.map(({ edge, mark }) => {
        const [from, to] = [byId.get(edge.source), byId.get(edge.target)];
        const [start, end] = [boxes.get(edge.source), boxes.get(edge.target)];
        if (!from || !to || !start || !end || mark === "removed" || !isStep(from)) return null;
        const x = (start.x + start.width + end.x) / 2;
        const top = start.y + portOf(from, "outputs", edge.source_handle);
        const y = (top + end.y + portOf(to, "inputs", edge.target_handle)) / 2;
        return (
          // By keyboard the details of a node have the same.
          <button
            key={edge.id}
            type="button"
            tabIndex={-1}
            className="plus line nodrag nopan"
            style={{ left: x, top: y }}
            aria-label={t("A step between {{node}} and {{other}}", { node: from.label, other: to.label })}
            onClick={() => onAsk({ kind: "line", edge })}
          >
            +
          </button>
        );
      })}
    </ViewportPortal>
  );
}

interface EdgeProps extends MarkedEdge {
  from: CanvasNode;
  to: CanvasNode;
  start: Box;
  end: Box;
}

function Edge({ edge, mark, expected, from, to, start, end }: EdgeProps) {
  const [path, labelX, labelY] = getBezierPath({
    sourceX: start.x + start.width,
    sourceY: start.y + portOf(from, "outputs", edge.source_handle),
    sourcePosition: Position.Right,
    targetX: end.x,
    targetY: end.y + portOf(to, "inputs", edge.target_handle),
    targetPosition: Position.Left,
  });
  // A branch has its name in the box that it leaves.
  const label = [SIGNS[mark], isBranching(from) ? "" : edge.label].filter(Boolean).join(" ");
  return (
    <g className={`edge mark-${mark}${expected ? " expected" : ""}`} data-id={edge.id}>
      <path d={path} />
      {label && (
        <text x={labelX} y={labelY}>
          {label}
        </text>
      )}
    </g>
  );
}

/** Distance of a port from the top of its box; of the first one when the node does not name it. */
const portOf = (node: CanvasNode, side: "inputs" | "outputs", handle: string): number =>
  portTop(node, side, Math.max(0, indexOf(node, side, handle)));

const indexOf = (node: CanvasNode, side: "inputs" | "outputs", handle: string): number =>
  node[side].findIndex((port) => port.id === handle);

/** Below the boxes, from the middle of one to the middle of the other. */
function wayBack(start: Box, end: Box): string {
  const [x1, x2] = [start.x + start.width / 2, end.x + end.width / 2];
  const [y1, y2] = [start.y + start.height, end.y + end.height];
  const deep = Math.max(y1, y2) + 50 + Math.abs(x1 - x2) * 0.06;
  return `M${x1} ${y1}C${x1} ${deep} ${x2} ${deep} ${x2} ${y2 + 3}`;
}
