import { Handle, type Node, type NodeProps, Position, useConnection } from "@xyflow/react";
import { type CSSProperties, createContext, memo, useContext } from "react";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { type Building, BuildingContext, fits, portName } from "./building";
import { InsideOf, initials, NodeIcon } from "./icons";
import { branchOf, hasMoreParams, isBranching, portTop, shownParams, tone } from "./layout";
import { MarkBadge, SIGNS } from "./MarkBadge";
import type { Mark } from "./merge";
import { readable } from "./readable";

export type NodeBoxType = Node<
  { node: CanvasNode; mark: Mark; ghost: boolean; before?: CanvasNode; steps?: number[]; open?: string[] },
  "flow"
>;

/** How far away the whole canvas is. */
export const DistanceContext = createContext<"near" | "far" | "tiny">("near");

/** A node as Flowise draws it: title, ports and settings. It is read-only. */
export const NodeBox = memo(function NodeBox({ data, selected }: NodeProps<NodeBoxType>) {
  const { node, mark, ghost, before, steps, open = [] } = data;
  const building = useContext(BuildingContext);
  const found = building?.findings.get(node.id) ?? [];
  const wrong = found.filter((one) => one.severity === "error").length;
  const distance = useContext(DistanceContext);
  const classes = `fnode ${node.kind} tone-${tone(node)} mark-${mark}${ghost ? " ghost" : ""}${selected ? " chosen" : ""}${isBranching(node) ? " branching" : ""}`;
  const handles =
    building && mark !== "removed" && distance !== "tiny" ? (
      <Handles node={node} open={open} building={building} />
    ) : null;
  if (node.kind === "note")
    return (
      <div className={`${classes} ${distance}`}>
        <MarkBadge mark={mark} />
        {node.note}
      </div>
    );
  if (distance !== "near")
    return (
      <div className={`${classes} ${distance}`} style={tint(node)}>
        {distance === "tiny" ? (
          (steps?.join(", ") ?? `${SIGNS[mark]} ${initials(node.label)}`)
        ) : (
          <>
            <span className="fnode-head">
              <NodeIcon node={node} />
              <span className="fnode-name">{node.label}</span>
            </span>
            <InsideOf node={node} bare />
            <Branches node={node} />
            {before && (
              <span className="fnode-changed">
                {shownParams(node)
                  .filter((param) => wasOf(before, param))
                  .map((param) => (
                    <span key={param.name} className="fnode-param">
                      <span>{param.label}</span> <Was before={before} param={param} /> {readable(param.value)}
                    </span>
                  ))}
              </span>
            )}
            {mark !== "same" && <span className={`mark mark-${mark}`}>{SIGNS[mark]}</span>}
            {wrong > 0 && <Missing number={wrong} />}
            {steps && <span className="ran">{steps.join(", ")}</span>}
          </>
        )}
        {handles}
      </div>
    );
  return (
    <div className={classes} style={tint(node)}>
      <header>
        <NodeIcon node={node} />
        <span className="fnode-title">
          <strong>{node.label}</strong>
          {node.kind === "node" ? <small className="for-experts">{node.name}</small> : <InsideOf node={node} />}
        </span>
      </header>
      <Branches node={node} />
      <MarkBadge mark={mark} />
      {wrong > 0 && <Missing number={wrong} />}
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
      {handles ?? <Ports node={node} />}
    </div>
  );
});

/** What a step can lead to, each beside the point where its line begins. */
const Branches = ({ node }: { node: CanvasNode }) =>
  isBranching(node) ? (
    <ul className="fnode-branches">
      {node.outputs.map((port, index) => (
        <li key={port.id}>{branchOf(node, index)}</li>
      ))}
    </ul>
  ) : null;

const Missing = ({ number }: { number: number }) => (
  <span className="node-finding" title={t("Still missing: {{number}}", { number })}>
    !
  </span>
);

/** A step has the colour that Flowise gives its type. */
const tint = ({ kind, color }: CanvasNode) =>
  kind !== "node" && /^#[0-9a-f]{3,8}$/i.test(color) ? ({ "--tone": color } as CSSProperties) : undefined;

/** The value of the earlier state, where it is another one. */
function Was({ before, param }: { before: CanvasNode | undefined; param: CanvasNode["params"][number] }) {
  const was = wasOf(before, param);
  return was ? <del>{readable(was)}</del> : null;
}

function wasOf(before: CanvasNode | undefined, param: CanvasNode["params"][number]): string | undefined {
  const was = before?.params.find(({ name }) => name === param.name)?.value;
  return was === param.value ? undefined : was;
}

/** Where lines begin and end. Nothing can be connected here, so they are only seen. */
function Ports({ node }: { node: CanvasNode }) {
  return (["inputs", "outputs"] as const).flatMap((side) =>
    node[side].map((port, index) => (
      <span key={`${side} ${port.id}`} className={`port ${side}`} style={{ top: portTop(node, side, index) }} />
    )),
  );
}

/** Where lines begin and end, to be dragged from; what fits the one that is dragged is lit. */
function Handles({ node, open, building }: { node: CanvasNode; open: string[]; building: Building }) {
  const from = useConnection((connection) => (connection.inProgress ? connection.fromHandle : null));
  const other = from && building.nodes.find((one) => one.id === from.nodeId);
  const lit = (side: "inputs" | "outputs", port: CanvasNode["inputs"][number]): string => {
    if (!from || !other) return "";
    const dragged = [...other.outputs, ...other.inputs].find((one) => one.id === from.id);
    if (!dragged || (from.type === "source") !== (side === "inputs")) return " far-off";
    const can = side === "inputs" ? fits(other, dragged, node, port) : fits(node, port, other, dragged);
    return can ? " fits" : " far-off";
  };
  return (["inputs", "outputs"] as const).flatMap((side) =>
    node[side].map((port, index) => {
      const style = { top: portTop(node, side, index) };
      const [type, position] =
        side === "inputs" ? (["target", Position.Left] as const) : (["source", Position.Right] as const);
      return [
        <Handle
          key={`${side} ${port.id}`}
          id={port.id}
          className={`port${lit(side, port)}`}
          {...{ type, position, style }}
        />,
        open.includes(port.id) && (
          // By keyboard the details of the node have the same.
          <button
            key={`plus ${side} ${port.id}`}
            type="button"
            tabIndex={-1}
            className={`plus nodrag ${side}`}
            style={style}
            aria-label={t("Add to {{list}}", { list: portName(node, side, index) || node.label })}
            onClick={(event) => {
              event.stopPropagation();
              building.ask({ kind: side === "inputs" ? "input" : "output", node, port });
            }}
          >
            +
          </button>
        ),
      ];
    }),
  );
}
