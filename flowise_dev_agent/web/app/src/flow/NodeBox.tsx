import { type Node, type NodeProps, Position, type ReactFlowState, useStore } from "@xyflow/react";
import { memo } from "react";
import type { CanvasNode } from "../api/types";
import { hasMoreParams, portTop, shownParams, tone } from "./layout";
import { MarkBadge } from "./MarkBadge";
import type { Mark } from "./merge";

export type NodeBoxType = Node<{ node: CanvasNode; mark: Mark; ghost: boolean; steps?: number[] }, "flow">;

/** A node as Flowise draws it: title, ports and settings. It is read-only. */
export const NodeBox = memo(function NodeBox({ data: { node, mark, ghost, steps }, selected }: NodeProps<NodeBoxType>) {
  const far = useStore(isFar);
  const classes = `fnode ${node.kind} tone-${tone(node)} mark-${mark}${ghost ? " ghost" : ""}${selected ? " chosen" : ""}`;
  if (node.kind === "note")
    return (
      <div className={classes}>
        <MarkBadge mark={mark} />
        {node.note}
      </div>
    );
  return (
    <div className={classes}>
      <header>
        <span className="fnode-icon" aria-hidden="true">
          {initials(node.label)}
        </span>
        <span className="fnode-title">
          <strong>{node.label}</strong>
          {node.kind === "node" && <small>{node.name}</small>}
        </span>
      </header>
      <MarkBadge mark={mark} />
      {steps && <span className="ran">{steps.join(", ")}</span>}
      {node.kind === "node" && !far && (
        <ul>
          {node.inputs.map((port) => (
            <li key={port.id}>{port.label}</li>
          ))}
          {shownParams(node).map((param) => (
            <li key={param.name} className="fnode-param">
              <span>{param.label}</span> {param.value}
            </li>
          ))}
          {hasMoreParams(node) && <li className="fnode-param">…</li>}
          {node.outputs.map((port) => (
            <li key={port.id} className="fnode-out">
              {port.label}
            </li>
          ))}
        </ul>
      )}
      {/* React Flow measures them: without them a node has no lines. */}
      <Ports node={node} />
    </div>
  );
});

/** So far away that nothing but the boxes can be told apart: hundreds of nodes are drawn without what is in them. */
const isFar = (state: ReactFlowState): boolean => state.transform[2] < 0.2;

/**
 * Where lines begin and end. Nothing can be connected here, so these are not React Flow's own handles, which listen to
 * the whole canvas each; it finds them by their attributes.
 */
function Ports({ node }: { node: CanvasNode }) {
  const drawn = (side: "inputs" | "outputs", kind: string, place: Position) =>
    node[side].map((port, index) => (
      <div
        key={port.id}
        className={`react-flow__handle react-flow__handle-${place} ${kind}`}
        data-handleid={port.id}
        data-handlepos={place}
        style={{ top: portTop(node, side, index) }}
      />
    ));
  return (
    <>
      {drawn("inputs", "target", Position.Left)}
      {drawn("outputs", "source", Position.Right)}
    </>
  );
}

/** Two letters in place of Flowise's icon, which is not served here. */
function initials(label: string): string {
  const words = label.split(/[\s_-]+|(?<=[a-z])(?=[A-Z])/).filter(Boolean);
  return (words.length > 1 ? `${words[0]?.[0] ?? ""}${words[1]?.[0] ?? ""}` : label.slice(0, 2)).toUpperCase();
}
