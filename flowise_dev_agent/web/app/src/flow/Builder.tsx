/** The picture of a flow that can be built by hand: nodes are added, connected, moved and set. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useState } from "react";
import { flowPreview, nodeType } from "../api/queries";
import type { CanvasNode, CanvasView, FlowPreview } from "../api/types";
import { t } from "../i18n";
import { useUndoKeys } from "../session/EditBar";
import { isNarrow } from "../session/Workbench";
import { ErrorNote } from "../ui/ErrorNote";
import { fieldsOf, type Schema, type Values } from "../ui/form/schema";
import { offerActions } from "../ui/paletteActions";
import {
  type Building,
  BuildingContext,
  type Copied,
  copied,
  fits,
  isStep,
  keepCopied,
  leadsBack,
  lineOf,
  type Place,
  pasted,
  placed,
  withoutCredentials,
} from "./building";
import { type Edit, type Editing, EditingContext, edited, freeId, opsOf, useEdits, valuesOf } from "./edits";
import { FlowCanvas } from "./FlowCanvas";
import { Legend } from "./FlowDiff";
import { useHandBuild } from "./handSession";
import { inWords } from "./layout";
import { findingsAtNodes } from "./mending";
import { calm, type Marked, previewed, unmarked } from "./merge";
import { NodeDetails } from "./NodeDetails";
import { Outline } from "./Outline";

const TypePicker = lazy(() => import("./TypePicker").then((module) => ({ default: module.TypePicker })));

/** The changes to a flow, or to a new one, and the flow with them. */
export function useBuild(chatflowId: string | null, instance: string | undefined, name: string) {
  const editing = useEdits(`flow:${instance ?? ""}:${chatflowId ?? "new"}`, true);
  const ops = opsOf(editing.edits);
  const preview = useQuery(flowPreview(chatflowId, instance, editing.base, ops));
  const { data, isPlaceholderData } = preview;
  const [chosen, choose] = useState<string | null>(null);
  const [place, ask] = useState<Place | null>(null);
  const hand = useHandBuild(chatflowId, instance, name, editing, data);
  const first = editing.edits.length > 0 && !editing.base && data && !isPlaceholderData ? data.sha256 : "";
  useEffect(() => {
    if (first) editing.rebase(first);
  });
  return { editing, drawn: data, error: preview.error, chosen, choose, place, ask, hand };
}

interface Props {
  /** As the server has it, until it is drawn with the changes; null for a new flow. */
  graph: CanvasView | null;
  instance: string;
  editing: Editing;
  drawn: FlowPreview | undefined;
  error: Error | null;
  /** The node whose details are shown. */
  chosen: string | null;
  choose: (id: string | null) => void;
  /** Where something is to be added. */
  place: Place | null;
  ask: (place: Place | null) => void;
  actions: Record<string, (() => void) | null>;
}

export function Builder({ graph, instance, editing, drawn, error, chosen, choose, place, ask, actions }: Props) {
  const [picked, pick] = useState<string[]>([]);
  // On a phone nothing can be dragged: the list is the editor.
  const [listed, list] = useState(isNarrow);
  const queries = useQueryClient();
  const flow = useMemo<Marked>(() => {
    const base = drawn ? previewed(drawn.preview) : graph ? unmarked(graph) : { nodes: [], edges: [] };
    return calm(edited(base, editing.edits));
  }, [drawn, graph, editing.edits]);
  const nodes = useMemo(() => flow.nodes.filter((one) => one.mark !== "removed").map((one) => one.node), [flow]);
  const edges = useMemo(() => flow.edges.filter((one) => one.mark !== "removed").map((one) => one.edge), [flow]);
  const marked = flow.nodes.find(({ node }) => node.id === chosen);

  function add(name: string, at: Place, label?: string, params?: Values) {
    const id = freeId(name, taken());
    const [first, ...rest] = placed(at, name, id, nodes);
    if (!first) return;
    editing.add({ ...first, ...(label && { label }), ...(params && { params }) }, ...rest);
    choose(at.kind === "replace" ? at.node.id : id);
  }
  function connect(at: Place, other: CanvasNode) {
    if (at.kind !== "input" && at.kind !== "output") return;
    const [from, to] = at.kind === "input" ? [other, at.node] : [at.node, other];
    if (leadsBack({ edges }, from, to)) {
      const output = at.kind === "output" ? at.port : from.outputs[0];
      return output && building.goBack(from, output, to);
    }
    const outputs = at.kind === "input" ? from.outputs : [at.port];
    const inputs = at.kind === "input" ? [at.port] : to.inputs;
    for (const output of outputs)
      for (const input of inputs)
        if (fits(from, output, to, input)) return editing.add(lineOf("Connect", from, output, to.id, input.name));
  }
  /** The settings of a node for another one like it. */
  async function settings(node: CanvasNode): Promise<Values> {
    const { form } = await queries.fetchQuery(nodeType(node.name, instance));
    const fields = fieldsOf(form as Schema);
    const names = new Set(fields.flatMap((one) => [one.name, one.schema["x-config"]]));
    const values = Object.entries(valuesOf(node, fields)).filter(
      ([name, value]) => names.has(name) && value !== undefined,
    );
    return withoutCredentials(Object.fromEntries(values)) as Values;
  }
  async function copyOf(some: CanvasNode[]): Promise<Copied> {
    const ids = new Set(some.map((one) => one.id));
    const params = await Promise.all(some.map(settings));
    return {
      nodes: some.map(({ id, name, label, x, y }, index) => ({ id, name, label, x, y, params: params[index] ?? {} })),
      lines: edges.filter((one) => ids.has(one.source) && ids.has(one.target)),
    };
  }
  const taken = () => [...flow.nodes.map((one) => one.node.id), ...editing.edits.map((one) => one.node_id ?? "")];
  function put(kept: Copied | null) {
    if (!kept || kept.nodes.length === 0) return;
    const { ops, ids } = pasted(kept, taken());
    editing.add(...ops);
    choose(ids.length === 1 ? (ids[0] ?? null) : null);
  }
  const findings = useMemo(() => Map.groupBy(findingsAtNodes(drawn), (one) => one.where), [drawn]);
  const building: Building = {
    ask,
    choose,
    nodes,
    edges,
    findings,
    goBack: (from, output, to) => {
      const id = freeId(LOOP, taken());
      const params = { loopBackToNode: `${to.id}-${to.label}` };
      const added: Edit = { op_type: "AddNode", node_name: LOOP, node_id: id, params };
      editing.add(
        { ...added, label: t("Back to {{node}}", { node: to.label }) },
        lineOf("Connect", from, output, id, ""),
      );
      choose(id);
    },
    duplicate: async (some) => put(await copyOf(some)),
    copy: async (some) => keepCopied(await copyOf(some)),
  };
  const note = () => add(nodes.some(isStep) ? "stickyNoteAgentflow" : "stickyNote", FREE);
  const paste = () => put(copied());
  // Its functions work on what is drawn now.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new one draws every node again
  const context = useMemo(() => building, [nodes, edges, findings, editing.edits]);

  useUndoKeys(editing);
  const act = (some: CanvasNode[], key: string) => {
    if (key === "v") return paste();
    if (some.length === 0) return;
    if (key === "delete") editing.remove(some.map((one) => one.id));
    else if (key === "d") void building.duplicate(some);
    else if (key === "c") void building.copy(some);
    else {
      const [x, y] = STEPS[key] ?? [0, 0];
      editing.add(
        ...some.map((one): Edit => ({ op_type: "SetPosition", node_id: one.id, x: one.x + x, y: one.y + y })),
      );
    }
  };
  const several = nodes.filter((one) => picked.includes(one.id));
  useKeys(chosen, (id, key) => act(several.length > 0 ? several : nodes.filter((one) => one.id === id), key));
  const offered: Record<string, (() => void) | null> = {
    [t("Add a node…")]: () => ask(FREE),
    [t("Add a note")]: note,
    [t("Paste")]: copied() ? paste : null,
    [t("Undo")]: editing.undo,
    [t("Redo")]: editing.redo,
    ...actions,
    ...Object.fromEntries(
      nodes.map((node) => [t("Node: {{node}}", { node: `${node.label} (${node.id})` }), () => choose(node.id)]),
    ),
  };
  useEffect(() => offerActions(offered));

  const tools = (
    <>
      <button type="button" className="button small" aria-pressed={listed} onClick={() => list(!listed)}>
        {t("As a list")}
      </button>
      <button type="button" className="button small" onClick={() => ask(FREE)}>
        {t("Add a node…")}
      </button>
      <button type="button" className="button small" onClick={note}>
        {t("Add a note")}
      </button>
      {several.length > 0 && (
        <fieldset className="row picked" aria-label={t("{{number}} selected", { number: several.length })}>
          <span className="badge live" role="status">
            {t("{{number}} selected", { number: several.length })}
          </span>
          {SEVERAL.map(([name, key]) => (
            <button key={key} type="button" className="button small" onClick={() => act(several, key)}>
              {t(name)}
            </button>
          ))}
        </fieldset>
      )}
      <Legend marked={flow} />
    </>
  );
  return (
    <EditingContext value={editing}>
      <BuildingContext value={context}>
        <div className="change-canvas">
          {listed ? (
            <div className="outline-view">
              <div className="canvas-tools">{tools}</div>
              <Outline building={context} chosen={chosen} onChoose={choose} />
            </div>
          ) : (
            <FlowCanvas
              flow={flow}
              label={inWords({ kind: drawn?.preview.kind ?? "", nodes, edges, cut: false })}
              chosen={chosen}
              onChoose={choose}
              onPick={pick}
            >
              {tools}
            </FlowCanvas>
          )}
          {flow.nodes.length === 0 && (
            <Empty>
              <button type="button" className="button primary" onClick={() => ask(FREE)}>
                {t("Add a node…")}
              </button>
              <button type="button" className="button" onClick={() => add("startAgentflow", FREE)}>
                {t("Start a flow of steps")}
              </button>
            </Empty>
          )}
          <ErrorNote error={error} />
          {marked && (
            <NodeDetails key={marked.node.id} marked={marked} instance={instance} onClose={() => choose(null)} />
          )}
        </div>
        {place && (
          <Suspense>
            <TypePicker
              place={place}
              nodes={nodes}
              instance={instance}
              onType={(name) => add(name, place)}
              onNode={(node) => connect(place, node)}
              onClose={() => ask(null)}
            />
          </Suspense>
        )}
      </BuildingContext>
    </EditingContext>
  );
}

export const FREE: Place = { kind: "free" };
const LOOP = "loopAgentflow";
/** What can be done with several nodes at once, with its key. */
const SEVERAL = [
  ["Duplicate", "d"],
  ["Copy", "c"],
  ["Remove", "delete"],
] as const;
/** Pixels of a move by key. */
const STEP = 20;
const STEPS: Record<string, [number, number]> = {
  arrowright: [STEP, 0],
  arrowleft: [-STEP, 0],
  arrowdown: [0, STEP],
  arrowup: [0, -STEP],
};

function Empty({ children }: { children: ReactNode }) {
  return (
    <div className="empty-flow stack">
      <p>{t("An empty flow. Begin with a node, and connect others to it.")}</p>
      <div className="row">{children}</div>
    </div>
  );
}

/** Delete, Ctrl+C, Ctrl+V, Ctrl+D and Shift with an arrow, for the node that has the focus or is chosen. */
function useKeys(chosen: string | null, act: (id: string | null, key: string) => void) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (target?.closest?.("input, textarea, select, dialog, [data-typing]")) return;
      const id = target?.closest<HTMLElement>(".react-flow__node")?.dataset.id ?? chosen;
      const key = event.key.toLowerCase();
      const held = event.ctrlKey || event.metaKey;
      const known = held
        ? ["c", "v", "d"].includes(key) && !event.shiftKey && !(key === "c" && String(getSelection()))
        : event.shiftKey
          ? key in STEPS
          : key === "delete";
      if (!known || event.altKey) return;
      event.preventDefault();
      act(id, key);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
}
