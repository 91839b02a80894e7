import {
  Background,
  Controls,
  type Edge,
  MiniMap,
  type NodeChange,
  Panel,
  Position,
  ReactFlow,
  ReactFlowProvider,
} from "@xyflow/react";
import { type ReactNode, useMemo, useRef } from "react";
import type { CanvasView } from "../api/types";
import { boxesOf, portTop } from "./layout";
import { type Marked, type MarkedEdge, type MarkedNode, unmarked } from "./merge";
import { NodeBox, type NodeBoxType, SIGNS } from "./NodeBox";
import "./flow.css";

const NODE_TYPES = { flow: NodeBox };
const HANDLE = 10;
/** Number of nodes from which the minimap is shown. */
const LARGE = 25;

export interface FlowCanvasProps {
  /** A single flow, or two states of one by `merged`. */
  flow: CanvasView | Marked;
  /** What the canvas shows, for screen readers. */
  label: string;
  /** CSS height. */
  height?: string;
  /** Id of the selected node; null for none. */
  chosen?: string | null;
  onChoose?: (id: string | null) => void;
  /** Shown over the canvas, at its top. */
  children?: ReactNode;
}

/** A read-only canvas as in Flowise: it pans and zooms, and nodes can be selected. */
export function FlowCanvas({ flow, label, height = "60vh", chosen = null, onChoose, children }: FlowCanvasProps) {
  const after = useRef<HTMLDivElement>(null);
  const marked = useMemo(() => ("kind" in flow ? unmarked(flow) : flow), [flow]);
  const drawn = useMemo(() => drawnNodes(marked.nodes), [marked]);
  const edges = useMemo(() => drawnEdges(marked.edges), [marked]);
  // Only the selected node is a new object, so that the others are not rendered again.
  const nodes = useMemo(
    () => (chosen ? drawn.map((node) => (node.id === chosen ? { ...node, selected: true } : node)) : drawn),
    [drawn, chosen],
  );

  function changed(changes: NodeChange<NodeBoxType>[]) {
    for (const change of changes) {
      if (change.type !== "select") continue;
      if (change.selected) onChoose?.(change.id);
      else if (change.id === chosen && !changes.some((other) => other.type === "select" && other.selected))
        onChoose?.(null);
    }
  }

  return (
    <section className="canvas" style={{ height }} aria-label={label}>
      <button type="button" className="button skip-canvas" onClick={() => after.current?.focus()}>
        Skip the canvas
      </button>
      <ReactFlowProvider>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          onNodesChange={changed}
          onPaneClick={() => onChoose?.(null)}
          fitView
          fitViewOptions={{ padding: 0.1, maxZoom: 1 }}
          minZoom={0.01}
          maxZoom={2}
          onlyRenderVisibleElements
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          elementsSelectable={Boolean(onChoose)}
          nodesFocusable={Boolean(onChoose)}
          deleteKeyCode={null}
          multiSelectionKeyCode={null}
          selectionKeyCode={null}
          panOnScroll={false}
        >
          <Background gap={24} />
          <Controls showInteractive={false} aria-label="Zoom" />
          {drawn.length >= LARGE && (
            <MiniMap
              pannable
              zoomable
              ariaLabel="Minimap"
              nodeClassName={(node: NodeBoxType) => `mark-${node.data.mark}`}
            />
          )}
          {children && <Panel position="top-left">{children}</Panel>}
        </ReactFlow>
      </ReactFlowProvider>
      <div ref={after} tabIndex={-1} />
    </section>
  );
}

function drawnNodes(nodes: MarkedNode[]): NodeBoxType[] {
  const boxes = boxesOf(nodes.map(({ node }) => node));
  return nodes.map(({ node, mark }) => {
    const { x, y, width, height } = boxes.get(node.id) ?? { x: 0, y: 0, width: 0, height: 0 };
    return {
      id: node.id,
      type: "flow",
      position: { x, y },
      data: { node, mark },
      width,
      height,
      // Sizes and ports are known, so nothing is measured and nodes out of sight are not rendered.
      measured: { width, height },
      handles: [
        ...node.inputs.map((port, index) => ({
          id: port.id,
          type: "target" as const,
          position: Position.Left,
          x: -HANDLE / 2,
          y: portTop(node, "inputs", index) - HANDLE / 2,
          width: HANDLE,
          height: HANDLE,
        })),
        ...node.outputs.map((port, index) => ({
          id: port.id,
          type: "source" as const,
          position: Position.Right,
          x: width - HANDLE / 2,
          y: portTop(node, "outputs", index) - HANDLE / 2,
          width: HANDLE,
          height: HANDLE,
        })),
      ],
      zIndex: node.kind === "iteration" ? -1 : 0,
      ariaLabel: `${node.label}, ${node.name}${mark === "same" ? "" : `, ${mark}`}`,
    };
  });
}

function drawnEdges(edges: MarkedEdge[]): Edge[] {
  return edges.map(({ edge, mark }) => ({
    id: edge.id,
    source: edge.source,
    target: edge.target,
    sourceHandle: edge.source_handle,
    targetHandle: edge.target_handle,
    className: `mark-${mark}`,
    ...(mark === "same"
      ? edge.label && { label: edge.label }
      : { label: `${SIGNS[mark]} ${[mark, edge.label].filter(Boolean).join(" ")}` }),
    selectable: false,
    zIndex: mark === "same" ? 0 : 1,
  }));
}
