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
  useReactFlow,
  useStore,
} from "@xyflow/react";
import { type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { CanvasView } from "../api/types";
import { t } from "../i18n";
import { arranged } from "./arrange";
import { boxesOf, portTop } from "./layout";
import { LitContext, type RunStep } from "./lit";
import { SIGNS } from "./MarkBadge";
import { type Marked, type MarkedEdge, type MarkedNode, unmarked } from "./merge";
import { NodeBox, type NodeBoxType } from "./NodeBox";
import "@xyflow/react/dist/style.css";
import "./flow.css";

const NODE_TYPES = { flow: NodeBox };
const HANDLE = 10;
/** The tools over the canvas cover no node. */
const FIT = { padding: { top: "92px", bottom: "56px", x: "5%" }, maxZoom: 1 } as const;
/** Number of nodes from which the minimap is shown. */
const LARGE = 25;

/** Positions as in Flowise, or a compact layout. */
export type Arrangement = "flowise" | "compact";
const KEPT = "flowise-dev-agent-layout";

export interface FlowCanvasProps {
  /** A single flow, or two states of one by `merged`. */
  flow: CanvasView | Marked;
  /** What the canvas shows, for screen readers. */
  label: string;
  /** The layout to begin with; the person can switch, and the browser keeps the choice. */
  arranged?: Arrangement;
  /** Id of the selected node; null for none. */
  chosen?: string | null;
  onChoose?: (id: string | null) => void;
  /** Shown over the canvas, at its top. */
  children?: ReactNode;
}

/** A read-only canvas as in Flowise: it pans and zooms, and nodes can be selected. */
export function FlowCanvas({
  flow,
  label,
  arranged: first = "flowise",
  chosen = null,
  onChoose,
  children,
}: FlowCanvasProps) {
  const after = useRef<HTMLDivElement>(null);
  const [kept, keep] = useState(() => localStorage.getItem(KEPT) as Arrangement | null);
  const arrangement = kept ?? first;
  const marked = useMemo(() => ("kind" in flow ? unmarked(flow) : flow), [flow]);
  const drawn = useMemo(
    () => drawnNodes(arrangement === "compact" ? compacted(marked) : marked.nodes),
    [marked, arrangement],
  );
  const edges = useMemo(() => drawnEdges(marked.edges), [marked]);
  const { ids: lit, run, showRun } = useContext(LitContext);
  const ran = useMemo(() => stepsByNode(run), [run]);
  // Only the selected node is a new object, so that the others are not rendered again.
  const nodes = useMemo(() => {
    if (!chosen && lit.length === 0 && ran.size === 0) return drawn;
    return drawn.map((node) => {
      const steps = ran.get(node.id);
      const pointed = lit.includes(node.id) || steps !== undefined;
      if (node.id !== chosen && !pointed) return node;
      return {
        ...node,
        selected: node.id === chosen,
        ...(pointed && { className: "lit" }),
        ...(steps && {
          data: { ...node.data, steps },
          ariaLabel: `${node.ariaLabel}, ${t("ran as step {{steps}}", { steps: steps.join(", ") })}`,
        }),
      };
    });
  }, [drawn, chosen, lit, ran]);

  function changed(changes: NodeChange<NodeBoxType>[]) {
    for (const change of changes) {
      if (change.type !== "select") continue;
      if (change.selected) onChoose?.(change.id);
      else if (change.id === chosen && !changes.some((other) => other.type === "select" && other.selected))
        onChoose?.(null);
    }
  }

  return (
    <section className={lit.length > 0 || ran.size > 0 ? "canvas pointed" : "canvas"} aria-label={label}>
      <button type="button" className="button skip-canvas" onClick={() => after.current?.focus()}>
        {t("Skip the canvas")}
      </button>
      <ReactFlowProvider>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          onNodesChange={changed}
          onPaneClick={() => onChoose?.(null)}
          fitView
          fitViewOptions={FIT}
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
          <Controls showInteractive={false} aria-label={t("Zoom")} />
          {drawn.length >= LARGE && (
            <MiniMap
              pannable
              zoomable
              ariaLabel="Minimap"
              nodeClassName={(node: NodeBoxType) => `mark-${node.data.mark}`}
            />
          )}
          <Panel position="top-left" className="canvas-tools">
            {children}
            {run && (
              <button type="button" className="button small" onClick={() => showRun(null)}>
                {t("Hide what ran")}
              </button>
            )}
          </Panel>
          <Panel position="bottom-center">
            <button
              type="button"
              className="button small"
              aria-pressed={arrangement === "compact"}
              onClick={() => {
                const other = arrangement === "compact" ? "flowise" : "compact";
                localStorage.setItem(KEPT, other);
                keep(other);
              }}
            >
              {arrangement === "compact" ? t("Positions as in Flowise") : t("Compact layout")}
            </button>
          </Panel>
          <Fit of={`${arrangement} ${drawn.length}`} />
        </ReactFlow>
      </ReactFlowProvider>
      <div ref={after} tabIndex={-1} />
    </section>
  );
}

/** Fits the flow into the window again when its layout, its nodes or the size of the canvas change. */
function Fit({ of }: { of: string }) {
  const { fitView } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are what it is fitted to
  useEffect(() => {
    const frame = requestAnimationFrame(() => void fitView(FIT));
    return () => cancelAnimationFrame(frame);
  }, [of, width, height, fitView]);
  return null;
}

/** The numbers of the steps in which each node ran. */
function stepsByNode(run: readonly RunStep[] | null): Map<string, number[]> {
  const found = new Map<string, number[]>();
  run?.forEach(({ node_id }, index) => {
    found.set(node_id, [...(found.get(node_id) ?? []), index + 1]);
  });
  return found;
}

function compacted({ nodes, edges }: Marked): MarkedNode[] {
  const placed = arranged(
    nodes.map(({ node }) => node),
    edges.map(({ edge }) => edge),
  );
  return nodes.map((marked, index) => ({ ...marked, node: placed[index] ?? marked.node }));
}

function drawnNodes(nodes: MarkedNode[]): NodeBoxType[] {
  const boxes = boxesOf(nodes.map(({ node }) => node));
  return nodes.map(({ node, mark, ghost = false }) => {
    const { x, y, width, height } = boxes.get(node.id) ?? { x: 0, y: 0, width: 0, height: 0 };
    return {
      id: node.id,
      type: "flow",
      position: { x, y },
      data: { node, mark, ghost },
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
      ariaLabel: `${node.label}, ${node.name}${mark === "same" ? "" : `, ${t(mark)}`}`,
    };
  });
}

function drawnEdges(edges: MarkedEdge[]): Edge[] {
  return edges.map(({ edge, mark, expected }) => ({
    id: edge.id,
    source: edge.source,
    target: edge.target,
    sourceHandle: edge.source_handle,
    targetHandle: edge.target_handle,
    className: expected ? `mark-${mark} expected` : `mark-${mark}`,
    ...(mark === "same"
      ? edge.label && { label: edge.label }
      : { label: [SIGNS[mark], edge.label].filter(Boolean).join(" ") }),
    selectable: false,
    zIndex: mark === "same" ? 0 : 1,
  }));
}
