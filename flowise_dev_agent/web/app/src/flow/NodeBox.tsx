import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import type { CanvasNode } from "../api/types";
import { hasMoreParams, portTop, shownParams, tone } from "./layout";
import { MarkBadge } from "./MarkBadge";
import type { Mark } from "./merge";

export type NodeBoxType = Node<{ node: CanvasNode; mark: Mark; ghost: boolean; steps?: number[] }, "flow">;

/** A node as Flowise draws it: title, ports and settings. It is read-only. */
export const NodeBox = memo(function NodeBox({ data: { node, mark, ghost, steps }, selected }: NodeProps<NodeBoxType>) {
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
      {node.kind === "node" && (
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
      {node.inputs.map((port, index) => (
        <Handle
          key={port.id}
          id={port.id}
          type="target"
          position={Position.Left}
          style={{ top: portTop(node, "inputs", index) }}
          isConnectable={false}
        />
      ))}
      {node.outputs.map((port, index) => (
        <Handle
          key={port.id}
          id={port.id}
          type="source"
          position={Position.Right}
          style={{ top: portTop(node, "outputs", index) }}
          isConnectable={false}
        />
      ))}
    </div>
  );
});

/** Two letters in place of Flowise's icon, which is not served here. */
function initials(label: string): string {
  const words = label.split(/[\s_-]+|(?<=[a-z])(?=[A-Z])/).filter(Boolean);
  return (words.length > 1 ? `${words[0]?.[0] ?? ""}${words[1]?.[0] ?? ""}` : label.slice(0, 2)).toUpperCase();
}
