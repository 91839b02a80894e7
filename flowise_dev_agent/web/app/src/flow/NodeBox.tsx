import type { Node, NodeProps } from "@xyflow/react";
import { createContext, memo, useContext } from "react";
import type { CanvasNode } from "../api/types";
import { hasMoreParams, portTop, shownParams, tone } from "./layout";
import { MarkBadge, SIGNS } from "./MarkBadge";
import type { Mark } from "./merge";
import { readable } from "./readable";

export type NodeBoxType = Node<
  { node: CanvasNode; mark: Mark; ghost: boolean; before?: CanvasNode; steps?: number[] },
  "flow"
>;

/** How far away the whole canvas is. */
export const DistanceContext = createContext<"near" | "far" | "tiny">("near");

/** A node as Flowise draws it: title, ports and settings. It is read-only. */
export const NodeBox = memo(function NodeBox({ data, selected }: NodeProps<NodeBoxType>) {
  const { node, mark, ghost, before, steps } = data;
  const distance = useContext(DistanceContext);
  const classes = `fnode ${node.kind} tone-${tone(node)} mark-${mark}${ghost ? " ghost" : ""}${selected ? " chosen" : ""}`;
  if (node.kind === "note")
    return (
      <div className={classes}>
        <MarkBadge mark={mark} />
        {node.note}
      </div>
    );
  if (distance !== "near")
    return (
      <div className={`${classes} ${distance}`}>
        {SIGNS[mark]} {steps?.join(", ") ?? (distance === "tiny" ? initials(node.label) : node.label)}
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
              <span>{param.label}</span> <Was before={before} param={param} /> {readable(param.value)}
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
      <Ports node={node} />
    </div>
  );
});

/** The value of the earlier state, where it is another one. */
function Was({ before, param }: { before: CanvasNode | undefined; param: CanvasNode["params"][number] }) {
  const was = before?.params.find(({ name }) => name === param.name)?.value;
  return was && was !== param.value ? <del>{readable(was)}</del> : null;
}

/** Where lines begin and end. Nothing can be connected here, so they are only seen. */
function Ports({ node }: { node: CanvasNode }) {
  return (["inputs", "outputs"] as const).flatMap((side) =>
    node[side].map((port, index) => (
      <span key={`${side} ${port.id}`} className={`port ${side}`} style={{ top: portTop(node, side, index) }} />
    )),
  );
}

/** Two letters in place of Flowise's icon, which is not served here. */
function initials(label: string): string {
  const words = label.split(/[\s_-]+|(?<=[a-z])(?=[A-Z])/).filter(Boolean);
  return (words.length > 1 ? `${words[0]?.[0] ?? ""}${words[1]?.[0] ?? ""}` : label.slice(0, 2)).toUpperCase();
}
