/** The connections of a flow. Nothing can be done with them here, so none of them listens to the canvas. */
import { getBezierPath, Position, ViewportPortal } from "@xyflow/react";
import { memo } from "react";
import type { CanvasNode } from "../api/types";
import { type Box, boxesOf, portTop } from "./layout";
import { SIGNS } from "./MarkBadge";
import type { Marked, MarkedEdge } from "./merge";

/** One drawing below the nodes, made again only when the flow changes. What leads where is in the nodes' own names. */
export const Edges = memo(function Edges({ nodes, edges }: Marked) {
  const byId = new Map(nodes.map(({ node }) => [node.id, node]));
  const boxes = boxesOf([...byId.values()]);
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
      </svg>
    </ViewportPortal>
  );
});

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
  const label = [SIGNS[mark], edge.label].filter(Boolean).join(" ");
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
  portTop(
    node,
    side,
    Math.max(
      0,
      node[side].findIndex((port) => port.id === handle),
    ),
  );
