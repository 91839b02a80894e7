/** What a person changes by hand on the picture: one list of ops, with undo and redo. */
import { createContext } from "react";
import type { CanvasNode, PatchOp } from "../api/types";
import type { StoredFile } from "../ui/files";
import type { FormField, Values } from "../ui/form/schema";
import { useDraft } from "../ui/useDraft";
import { paramLabel } from "./layout";
import type { Mark, Marked } from "./merge";

export type EditValue = string | number | boolean | unknown[];

/** An op, with the files that its value names. Which fields it has follows from its type. */
export interface Edit {
  op_type: PatchOp["op_type"];
  node_id?: string;
  node_name?: string;
  label?: string;
  param_name?: string;
  value?: unknown;
  params?: Record<string, unknown>;
  source_node_id?: string;
  source_anchor?: string | null;
  target_node_id?: string;
  target_anchor?: string;
  parent_id?: string;
  credential_id?: string;
  credential_type?: string;
  path?: string;
  x?: number;
  y?: number;
  files?: StoredFile[];
}

interface Kept {
  past: Edit[][];
  now: Edit[];
  future: Edit[][];
  /** Of the flow that they began with. */
  base: string;
}

const EMPTY: Kept = { past: [], now: [], future: [], base: "" };

export interface Editing {
  edits: Edit[];
  /** The hash of the flow that they began with; "" when that was not said. */
  base: string;
  /** Nodes and connections can be made, too. */
  builds: boolean;
  /** Later ops of a kind that says all take the place of earlier ones. */
  add: (...ops: Edit[]) => void;
  /** A value of null takes an edit back. */
  set: (node_id: string, param: string, value: EditValue | null, files?: StoredFile[]) => void;
  /** Remove a node, or keep it after all. */
  toggleRemoval: (node_id: string) => void;
  remove: (ids: string[]) => void;
  takeOut: (...edits: Edit[]) => void;
  undo: (() => void) | null;
  redo: (() => void) | null;
  clear: () => void;
  /** The edits are for the flow as it is now. */
  rebase: (base: string) => void;
}

/** Null where nothing can be edited. */
export const EditingContext = createContext<Editing | null>(null);

/** Edits for an open question, kept by the tab until they are sent; those that build a flow, by the browser. */
export function useEdits(subject: string, builds = false): Editing {
  const [{ past, now, future, base }, keep] = useDraft<Kept>(`edits:${subject}`, EMPTY, isKept, builds);
  const go = (next: Edit[]) => keep({ past: [...past, now].slice(-100), now: next, future: [], base });
  const before = past.at(-1);
  const after = future[0];
  const add = (...ops: Edit[]) => go(ops.reduce(withOp, now));
  const takeOut = (...edits: Edit[]) => go(edits.reduce(without, now));
  return {
    edits: now,
    base,
    builds,
    add,
    set: (node_id, param_name, value, files) => {
      if (value !== null) return add({ op_type: "SetParam", node_id, param_name, value, ...(files && { files }) });
      const edit = editOf(now, node_id, param_name);
      if (edit) takeOut(edit);
    },
    toggleRemoval: (id) => {
      const removal = now.find((one) => one.op_type === "RemoveNode" && one.node_id === id);
      if (removal) takeOut(removal);
      else go(removed(now, id));
    },
    remove: (ids) => go(ids.reduce(removed, now)),
    takeOut,
    undo: before ? () => keep({ past: past.slice(0, -1), now: before, future: [now, ...future], base }) : null,
    redo: after ? () => keep({ past: [...past, now], now: after, future: future.slice(1), base }) : null,
    clear: () => keep(null),
    rebase: (to) => keep({ past, now, future, base: to }),
  };
}

const isKept = (kept: Kept): boolean => Array.isArray(kept.now);

/** What an op is about, where the last one counts; "" where each does. */
function subject({ op_type, node_id, param_name, path = "" }: Edit): string {
  if (op_type === "BindCredential") return `${op_type} ${node_id} ${path}`;
  if (op_type === "SetParam") return `${op_type} ${node_id} ${param_name}`;
  return op_type === "SetLabel" || op_type === "SetPosition" ? `${op_type} ${node_id}` : "";
}

const OPPOSITE: Record<string, string> = { Connect: "Disconnect", Disconnect: "Connect" };

function withOp(edits: Edit[], op: Edit): Edit[] {
  const same = subject(op) ? edits.findIndex((one) => subject(one) === subject(op)) : -1;
  if (same >= 0) return edits.with(same, op);
  // A line that is cut again was never there.
  const undone = edits.find((one) => one.op_type === OPPOSITE[op.op_type] && line(one) === line(op));
  return undone ? edits.filter((one) => one !== undone) : [...edits, op];
}

const line = (op: Edit): string =>
  [op.source_node_id, op.source_anchor ?? "", op.target_node_id, op.target_anchor ?? ""].join(" ");

const about = (op: Edit, id: string | undefined): boolean =>
  [op.node_id, op.source_node_id, op.target_node_id].includes(id);

/** Without an edit, and without what needs it. */
const without = (edits: Edit[], edit: Edit): Edit[] =>
  edits.filter((one) => one !== edit && !(edit.op_type === "AddNode" && about(one, edit.node_id)));

/** Without a node: one that was only added was never there. */
function removed(edits: Edit[], id: string): Edit[] {
  const added = edits.find((one) => one.op_type === "AddNode" && one.node_id === id);
  if (added) return without(edits, added);
  return [...edits.filter((one) => !about(one, id)), { op_type: "RemoveNode", node_id: id }];
}

/** The edit of a field. */
export const editOf = (edits: Edit[], node_id: string, param: string): Edit | undefined =>
  edits.find((one) => one.op_type === "SetParam" && one.node_id === node_id && one.param_name === param);

/** A new id for a node of a type. */
export function freeId(name: string, taken: Iterable<string>): string {
  const ids = new Set(taken);
  let number = 0;
  while (ids.has(`${name}_${number}`)) number += 1;
  return `${name}_${number}`;
}

/** What a node's fields hold, as their schema has it; undefined for what is not here in full. */
export function valuesOf({ params }: CanvasNode, fields: FormField[]): Values {
  const json = new Set(
    fields.flatMap(({ name, kind, schema }) => [
      ...(["list", "rows"].includes(kind) ? [name] : []),
      ...(schema["x-config"] ? [schema["x-config"]] : []),
    ]),
  );
  const values: Values = {};
  for (const { name, value, cut } of params) {
    const [first = "", inner] = name.split(".");
    if (cut) values[name] = undefined;
    else if (inner && json.has(first)) values[first] = { ...(values[first] as Values), [inner]: value };
    else values[name] = json.has(name) ? parsed(value) : value;
  }
  return values;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As the answer to a plan takes them. */
export const sentEdits = (edits: Edit[]) => ({
  values: edits.flatMap(({ op_type, node_id = "", param_name: param = "", value }) =>
    op_type === "SetParam" ? [{ node_id, param, value: value as EditValue }] : [],
  ),
  removals: edits.flatMap(({ op_type, node_id = "" }) => (op_type === "RemoveNode" ? [node_id] : [])),
});

/** Ids of the files that go with them. */
export const filesOf = (edits: Edit[]): string[] => [
  ...new Set(edits.flatMap((one) => (one.files ?? []).map((file) => file.id))),
];

/** As ops, for a flow that is there already. */
export const opsOf = (edits: Edit[]): PatchOp[] => edits.map(({ files: _, ...op }) => op as unknown as PatchOp);

/** The drawing with the edits in it that can be drawn here. */
export function edited(flow: Marked, edits: Edit[]): Marked {
  if (edits.length === 0) return flow;
  const byNode = Map.groupBy(edits, (one) => one.node_id);
  return {
    ...flow,
    nodes: flow.nodes.map((marked) => {
      const own = byNode.get(marked.node.id);
      if (!own) return marked;
      const known = new Map(marked.node.params.map((one) => [one.name, one]));
      const node = { ...marked.node };
      let mark: Mark = marked.mark;
      for (const op of own) {
        if (op.op_type === "RemoveNode") mark = "removed";
        if (op.op_type === "SetPosition") Object.assign(node, { x: op.x, y: op.y });
        if (op.op_type === "SetLabel" && op.label) node.label = op.label;
        if (op.op_type !== "SetParam" || !op.param_name) continue;
        if (mark === "same" || mark === "moved") mark = "changed";
        if (node.kind === "note" && op.param_name === "note") node.note = String(op.value);
        known.set(op.param_name, {
          name: op.param_name,
          label: known.get(op.param_name)?.label ?? paramLabel(op.param_name),
          value: typeof op.value === "object" ? JSON.stringify(op.value) : String(op.value),
          cut: false,
        });
      }
      return { ...marked, mark, node: { ...node, params: [...known.values()] } };
    }),
  };
}
