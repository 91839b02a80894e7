import {
  Background,
  type Connection,
  Controls,
  type Edge,
  type NodeChange,
  type NodeHandle,
  Panel,
  Position,
  ReactFlow,
  type ReactFlowProps,
  ReactFlowProvider,
  type Transform,
  useReactFlow,
  useStore,
  useStoreApi,
  type XYPosition,
} from "@xyflow/react";
import { type ReactNode, type RefObject, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { CanvasNode, CanvasView } from "../api/types";
import { t } from "../i18n";
import { focusIsFree } from "../ui/keepFocus";
import { arranged } from "./arrange";
import { type Building, BuildingContext, fits, isStep, leadsBack, lineOf } from "./building";
import { Edges, LineButtons } from "./Edges";
import { type Edit, EditingContext } from "./edits";
import { HighlightContext, type RunStep } from "./highlight";
import { KeyboardNavigation } from "./KeyboardNavigation";
import { type Box, bounds, boxesOf, firstOf, portTop } from "./layout";
import { type Marked, type MarkedEdge, type MarkedNode, unmarked } from "./merge";
import { DistanceContext, NodeBox, type NodeBoxType } from "./NodeBox";
import { Overview } from "./Overview";
import "@xyflow/react/dist/style.css";
import "./flow.css";

const NODE_TYPES = { flow: NodeBox };
/** The tools over the canvas cover no node. */
const FIT = { padding: { top: "64px", bottom: "56px", x: "3%" }, maxZoom: 1 } as const;
/** On a low canvas they may: the flow would be too small to read. */
const FIT_LOW = { padding: { top: "56px", bottom: "8px", x: "5%" }, maxZoom: 1 } as const;
const LOW = 320;
/** Number of nodes from which the minimap is shown. */
const LARGE = 25;
/** Below this zoom letters are smaller than 11 pixels: a box is its icon and its name in large ones, then its initials. */
const FAR = 0.79;
const TINY = 0.15;
/** Below this zoom all nodes are there, seen or not. */
const WHOLE = 0.3;
const LETTERS_PX = 11;
/** A chosen node becomes no smaller than this share when its details take room. */
const SMALLER = 0.75;
/** Letters of names grow in steps, so that not each step of a zoom paints them again. */
const LETTERS = [14, 16, 18, 21, 24, 28, 32, 37, 43, 50, 60];
/** After this time without another step a zoom has ended. */
const ZOOM_MS = 150;

export interface FlowCanvasProps {
  /** A single flow, or two states of one by `merged`. */
  flow: CanvasView | Marked;
  /** What the canvas shows, for screen readers. */
  label: string;
  /** Id of the selected node; null for none. */
  chosen?: string | null;
  onChoose?: (id: string | null) => void;
  /** Several nodes are selected, or none any more. */
  onPick?: (ids: string[]) => void;
  /** Shown over the canvas, at its top. */
  children?: ReactNode;
}

/** A canvas as in Flowise: it pans and zooms, and nodes can be selected; where a flow is built, moved and connected. */
export function FlowCanvas({ flow, label, chosen = null, onChoose, onPick, children }: FlowCanvasProps) {
  const after = useRef<HTMLDivElement>(null);
  const building = useContext(BuildingContext);
  const editing = useContext(EditingContext);
  const [moving, move] = useState<ReadonlyMap<string, XYPosition>>(STILL);
  const [picked, pick] = useState<string[]>([]);
  /** The person has moved or zoomed the picture. */
  const byHand = useRef(false);
  const [tidied, tidy] = useState(0);
  const marked = useMemo(() => ("kind" in flow ? unmarked(flow) : flow), [flow]);
  // Nodes that have no place yet, as a plan names them, get one.
  const placed = useMemo(() => (isUnplaced(marked) ? compacted(marked) : marked.nodes), [marked]);
  const boxes = useMemo(() => boxesOf(placed.map(({ node }) => node)), [placed]);
  const builds = building !== null;
  const drawn = useMemo(() => drawnNodes(placed, marked.edges, boxes, builds), [placed, marked, boxes, builds]);
  const shownAt = useMemo(() => (moving.size > 0 ? movedTo(placed, boxes, moving) : placed), [placed, boxes, moving]);
  const { ids: lit, run, showRun } = useContext(HighlightContext);
  const [visited, visit] = useState<string | null>(null);
  const begin = useMemo(() => firstOf(boxes), [boxes]);
  const entry = chosen ?? (visited !== null && boxes.has(visited) ? visited : begin);
  const leave = useCallback(() => onChoose?.(null), [onChoose]);
  const ran = useMemo(() => stepsByNode(run), [run]);
  // The details of a node are closed: back to the node.
  const shown = useRef(chosen);
  useEffect(() => {
    const closed = chosen === null ? shown.current : null;
    shown.current = chosen;
    if (closed !== null && focusIsFree())
      after.current?.parentElement?.querySelector<HTMLElement>(`[data-id="${CSS.escape(closed)}"]`)?.focus();
  }, [chosen]);
  // Only the selected node is a new object, so that the others are not rendered again.
  const nodes = useMemo(() => {
    return drawn.map((node) => {
      const steps = ran.get(node.id);
      const pointed = lit.includes(node.id) || steps !== undefined;
      const moves = moving.get(node.id);
      const selected = node.id === chosen || picked.includes(node.id);
      if (!selected && node.id !== entry && !pointed && !moves) return node;
      return {
        ...node,
        ...(moves && { position: moves }),
        selected,
        ...(node.id === entry && { domAttributes: {} }),
        ...(pointed && { className: "lit" }),
        ...(steps && {
          data: { ...node.data, steps },
          ariaLabel: `${node.ariaLabel}, ${t("ran as step {{steps}}", { steps: steps.join(", ") })}`,
        }),
      };
    });
  }, [drawn, chosen, entry, lit, ran, moving, picked]);

  function changed(changes: NodeChange<NodeBoxType>[]) {
    const moved = changes.flatMap((one) => (one.type === "position" && one.position ? [one] : []));
    if (moved.some((one) => one.dragging))
      move(new Map(moved.flatMap(({ id, position }) => (position ? [[id, position]] : []))));
    else if (moved.length > 0 && moving.size > 0) {
      move(STILL);
      editing?.add(...positions(movedTo(placed, boxes, moving).filter((one) => moving.has(one.node.id))));
    }
    const selects = changes.flatMap((one) => (one.type === "select" ? [one] : []));
    if (selects.length === 0) return;
    const before = picked.length > 0 ? picked : chosen ? [chosen] : [];
    const off = new Set(selects.flatMap((one) => (one.selected ? [] : [one.id])));
    const on = selects.flatMap((one) => (one.selected ? [one.id] : []));
    select([...new Set([...before.filter((id) => !off.has(id)), ...on])]);
  }
  function select(ids: string[]) {
    const several = ids.length > 1 ? ids : [];
    if (several.length !== picked.length || several.some((id) => !picked.includes(id))) {
      pick(several);
      onPick?.(several);
    }
    onChoose?.(ids.length === 1 ? (ids[0] ?? null) : null);
  }

  return (
    <section className={lit.length > 0 || ran.size > 0 ? "canvas pointed" : "canvas"} aria-label={label}>
      <button type="button" className="button skip-canvas" onClick={() => after.current?.focus()}>
        {t("Skip the canvas")}
      </button>
      <ReactFlowProvider>
        <Distance>
          <Plane
            nodes={nodes}
            nodeTypes={NODE_TYPES}
            onNodesChange={changed}
            onPaneClick={() => select([])}
            onMoveStart={(event) => {
              if (event) byHand.current = true;
            }}
            fitView
            fitViewOptions={FIT}
            minZoom={0.01}
            maxZoom={2}
            nodesDraggable={builds}
            nodesConnectable={builds}
            isValidConnection={(line) => Boolean(building && endsOf(building, line))}
            onConnect={(line) => {
              const ends = building && endsOf(building, line);
              if (ends) editing?.add(lineOf("Connect", ends.from, ends.output, ends.to.id, ends.input.name));
            }}
            onConnectEnd={(_, state) => {
              const node = building?.nodes.find((one) => one.id === state.fromHandle?.nodeId);
              const port = [...(node?.inputs ?? []), ...(node?.outputs ?? [])].find(
                (one) => one.id === state.fromHandle?.id,
              );
              const to = building?.nodes.find((one) => one.id === state.toHandle?.nodeId);
              if (node && port && to && building && leadsBack(building, node, to))
                return building.goBack(node, port, to);
              if (!node || !port || state.toHandle) return;
              building?.ask({ kind: state.fromHandle?.type === "target" ? "input" : "output", node, port });
            }}
            elementsSelectable={Boolean(onChoose)}
            nodesFocusable={Boolean(onChoose)}
            deleteKeyCode={null}
            multiSelectionKeyCode={builds ? MANY_KEYS : null}
            ariaLabelConfig={{
              "node.a11yDescription.default": t(
                "Enter shows the settings of the node; arrow keys lead to the next one.",
              ),
            }}
            selectionKeyCode={builds ? "Shift" : null}
            panOnScroll={false}
          >
            <Dots />
            {onChoose && <KeyboardNavigation boxes={boxes} onVisit={visit} onLeave={leave} />}
            <Edges nodes={shownAt} edges={marked.edges} />
            {building && <LineButtons nodes={shownAt} edges={marked.edges} onAsk={building.ask} />}
            <Controls showInteractive={false} aria-label={t("Zoom")} />
            {drawn.length >= LARGE && <Overview nodes={placed} />}
            <Panel position="top-left" className="canvas-tools">
              {children}
              {run && (
                <button type="button" className="button small" onClick={() => showRun(null)}>
                  {t("Hide what ran")}
                </button>
              )}
            </Panel>
            {building && placed.length > 0 && (
              <Panel position="bottom-left" className="canvas-layout">
                <button
                  type="button"
                  className="button small"
                  onClick={() => {
                    editing?.add(...positions(compacted({ ...marked, nodes: placed })));
                    byHand.current = false;
                    tidy(tidied + 1);
                  }}
                >
                  {t("Tidy up")}
                </button>
              </Panel>
            )}
            <Fit of={`${drawn.length} ${tidied}`} byHand={byHand} boxes={boxes} chosen={chosen} />
          </Plane>
        </Distance>
      </ReactFlowProvider>
      <div ref={after} tabIndex={-1} />
    </section>
  );
}

/** Tells all nodes at once when they are far away, and how large their letters are to be. */
function Distance({ children }: { children: ReactNode }) {
  const distance = useStore(({ transform: [, , zoom] }) => (zoom < TINY ? "tiny" : zoom < FAR ? "far" : "near"));
  const store = useStoreApi();
  // From far away a picture that only moves is not painted again; one that grows is, or it would be blurred.
  useEffect(() => {
    let zoom = 0;
    let letters = 0;
    let timer = 0;
    const look = ({ transform, domNode }: { transform: Transform; domNode: HTMLDivElement | null }) => {
      if (transform[2] === zoom || !domNode) return;
      zoom = transform[2];
      const size = LETTERS.find((one) => one * zoom >= LETTERS_PX) ?? 64;
      if (size !== letters) domNode.style.setProperty("--letters", `${size}px`);
      letters = size;
      window.clearTimeout(timer);
      domNode.classList.remove("still");
      if (zoom < FAR) timer = window.setTimeout(() => domNode.classList.add("still"), ZOOM_MS);
    };
    look(store.getState());
    const stop = store.subscribe(look);
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [store]);
  return <DistanceContext value={distance}>{children}</DistanceContext>;
}

/** From far away all nodes are there: to take those at the edge out and in again costs more than a whole drag. */
function Plane(props: ReactFlowProps<NodeBoxType>) {
  const whole = useStore(({ transform }) => transform[2] < WHOLE);
  return <ReactFlow {...props} onlyRenderVisibleElements={!whole} />;
}

/** The dots behind the flow; from far away they would be a grey noise. */
function Dots() {
  return useStore(({ transform }) => transform[2] >= WHOLE) ? <Background gap={24} /> : null;
}

interface FitProps {
  of: string;
  byHand: RefObject<boolean>;
  boxes: Map<string, Box>;
  chosen: string | null;
}

/**
 * Fits the flow into the window again when its nodes or the size of the canvas change. Once the person has moved the
 * picture, or where a chosen node would become much smaller, it only goes to a node that is out of sight.
 */
function Fit({ of, byHand, boxes, chosen }: FitProps) {
  const { fitView, setCenter } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const store = useStoreApi();
  const seen = chosen ? boxes.get(chosen) : undefined;
  const [x, y] = [seen?.x, seen?.y];
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are what it is fitted to
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const [left, top, zoom] = store.getState().transform;
      const all = bounds(boxes.values());
      const fitting = Math.min(width / all.width, height / all.height);
      if (!byHand.current && (!seen || fitting > zoom * SMALLER)) return void fitView(height < LOW ? FIT_LOW : FIT);
      const inSight = (at: number, from: number, long: number, most: number) =>
        from * zoom + at >= 0 && (from + long) * zoom + at <= most;
      if (!seen || (inSight(left, seen.x, seen.width, width) && inSight(top, seen.y, seen.height, height))) return;
      void setCenter(seen.x + seen.width / 2, seen.y + seen.height / 2, { zoom });
    });
    return () => cancelAnimationFrame(frame);
  }, [of, width, height, x, y, fitView, setCenter]);
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

const STILL: ReadonlyMap<string, XYPosition> = new Map();
const MANY_KEYS = ["Shift", "Control", "Meta"];

const isUnplaced = ({ nodes }: Marked): boolean =>
  nodes.length > 1 && nodes.every(({ node }) => node.x === nodes[0]?.node.x && node.y === nodes[0]?.node.y);

/** The nodes with some of them at other places of the canvas. */
function movedTo(nodes: MarkedNode[], boxes: Map<string, Box>, moving: ReadonlyMap<string, XYPosition>) {
  return nodes.map((marked) => {
    const to = moving.get(marked.node.id);
    if (!to) return marked;
    // Inside of an iteration it is counted from the corner.
    const corner = boxes.get(marked.node.parent) ?? { x: 0, y: 0 };
    return { ...marked, node: { ...marked.node, x: Math.round(to.x - corner.x), y: Math.round(to.y - corner.y) } };
  });
}

const positions = (nodes: MarkedNode[]): Edit[] =>
  nodes
    .filter((one) => one.mark !== "removed")
    .map(({ node: { id, x, y } }) => ({ op_type: "SetPosition", node_id: id, x: Math.round(x), y: Math.round(y) }));

/** The ends of a line that is drawn, if it may be. */
function endsOf(
  { nodes, edges }: Pick<Building, "nodes" | "edges">,
  { source, sourceHandle, target, targetHandle }: Connection | Edge,
) {
  const [from, to] = [nodes.find((one) => one.id === source), nodes.find((one) => one.id === target)];
  const output = from?.outputs.find((one) => one.id === sourceHandle);
  const input = to?.inputs.find((one) => one.id === targetHandle);
  if (!from || !to || !output || !input || !fits(from, output, to, input)) return null;
  if (leadsBack({ edges }, from, to)) return null;
  const there = edges.some((one) => one.source_handle === sourceHandle && one.target_handle === targetHandle);
  return there ? null : { from, output, to, input };
}

function drawnNodes(nodes: MarkedNode[], edges: MarkedEdge[], boxes: Map<string, Box>, builds: boolean): NodeBoxType[] {
  const used = new Set(
    edges.flatMap(({ edge, mark }) => (mark === "removed" ? [] : [edge.source_handle, edge.target_handle])),
  );
  const labels = new Map(nodes.map(({ node }) => [node.id, node.label]));
  const leading = Map.groupBy(edges, ({ edge }) => edge.source);
  return nodes.map(({ node, mark, ghost = false, before }) => {
    const { x, y, width, height } = boxes.get(node.id) ?? { x: 0, y: 0, width: 0, height: 0 };
    const next = [...new Set(leading.get(node.id)?.map(({ edge }) => labels.get(edge.target) ?? edge.target))];
    return {
      id: node.id,
      type: "flow",
      position: { x, y },
      data: {
        node,
        mark,
        ghost,
        ...(before && mark === "changed" && { before }),
        ...(builds && { open: openPorts(node, used) }),
      },
      width,
      height,
      // Sizes are known, so nothing is measured and nodes out of sight are not rendered.
      measured: { width, height },
      // One of them is reached by the tab key, and the others from there.
      domAttributes: { tabIndex: -1 },
      handles: builds ? handlesOf(node, width) : [],
      zIndex: node.kind === "iteration" ? -1 : 0,
      ariaLabel: [
        node.label,
        node.name,
        ...(mark === "same" ? [] : [t(mark)]),
        ...(next.length > 0 ? [t("leads to {{nodes}}", { nodes: next.join(", ") })] : []),
      ].join(", "),
    };
  });
}

/** Inputs that nothing is connected to, and ends of steps that nothing follows. */
const openPorts = (node: CanvasNode, used: Set<string>): string[] =>
  [...(isStep(node) ? node.outputs : node.inputs)].map((port) => port.id).filter((id) => !used.has(id));

const handlesOf = (node: CanvasNode, width: number): NodeHandle[] =>
  (["inputs", "outputs"] as const).flatMap((side) =>
    node[side].map((port, index) => ({
      id: port.id,
      type: side === "inputs" ? ("target" as const) : ("source" as const),
      position: side === "inputs" ? Position.Left : Position.Right,
      x: (side === "inputs" ? 0 : width) - HANDLE / 2,
      y: portTop(node, side, index) - HANDLE / 2,
      width: HANDLE,
      height: HANDLE,
    })),
  );
const HANDLE = 14;
