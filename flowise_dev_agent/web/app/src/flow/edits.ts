/** What a person changes by hand on the picture, before it is sent: with undo and redo. */
import { createContext } from "react";
import type { CanvasNode, PatchOp } from "../api/types";
import type { StoredFile } from "../ui/files";
import type { FormField, Values } from "../ui/form/schema";
import { useDraft } from "../ui/useDraft";
import { paramLabel } from "./layout";
import type { Mark, Marked } from "./merge";

export type EditValue = string | number | boolean | unknown[];

export interface Edits {
  /** `files` are those that a value names. */
  values: { node_id: string; param: string; value: EditValue; files?: StoredFile[] }[];
  removals: string[];
}

interface Kept {
  past: Edits[];
  now: Edits;
  future: Edits[];
}

const NONE: Edits = { values: [], removals: [] };
const EMPTY: Kept = { past: [], now: NONE, future: [] };

export interface Editing {
  edits: Edits;
  /** A value of null takes an edit back. */
  set: (node_id: string, param: string, value: EditValue | null, files?: StoredFile[]) => void;
  /** Remove a node, or keep it after all. */
  toggleRemoval: (node_id: string) => void;
  undo: (() => void) | null;
  redo: (() => void) | null;
  clear: () => void;
}

/** Null where nothing can be edited. */
export const EditingContext = createContext<Editing | null>(null);

/** Edits for an open question; the tab keeps them until they are sent. */
export function useEdits(questionId: string): Editing {
  const [{ past, now, future }, keep] = useDraft<Kept>(`edits:${questionId}`, EMPTY);
  const go = (next: Edits) => keep({ past: [...past, now], now: next, future: [] });
  const before = past.at(-1);
  const after = future[0];
  return {
    edits: now,
    set: (node_id, param, value, files) => {
      const others = now.values.filter((one) => one.node_id !== node_id || one.param !== param);
      const added = value === null ? [] : [{ node_id, param, value, ...(files && { files }) }];
      go({ ...now, values: [...others, ...added] });
    },
    toggleRemoval: (id) =>
      go(
        now.removals.includes(id)
          ? { ...now, removals: now.removals.filter((one) => one !== id) }
          : { values: now.values.filter((one) => one.node_id !== id), removals: [...now.removals, id] },
      ),
    undo: before ? () => keep({ past: past.slice(0, -1), now: before, future: [now, ...future] }) : null,
    redo: after ? () => keep({ past: [...past, now], now: after, future: future.slice(1) }) : null,
    clear: () => keep(null),
  };
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

export const countEdits = ({ values, removals }: Edits): number => values.length + removals.length;

/** As the answer to a plan takes them. */
export const sentEdits = ({ values, removals }: Edits): Edits => ({
  values: values.map(({ node_id, param, value }) => ({ node_id, param, value })),
  removals,
});

/** Ids of the files that go with the answer. */
export const filesOf = ({ values }: Edits): string[] => [
  ...new Set(values.flatMap((one) => (one.files ?? []).map((file) => file.id))),
];

/** The same as ops, for a flow that is written already. */
export const opsOf = ({ values, removals }: Edits): PatchOp[] =>
  [
    ...values.map(({ node_id, param, value }) => ({ op_type: "SetParam", node_id, param_name: param, value })),
    ...removals.map((node_id) => ({ op_type: "RemoveNode", node_id })),
  ] as unknown as PatchOp[];

/** The drawing with the edits in it. */
export function edited(flow: Marked, { values, removals }: Edits): Marked {
  if (values.length + removals.length === 0) return flow;
  const byNode = Map.groupBy(values, (one) => one.node_id);
  return {
    ...flow,
    nodes: flow.nodes.map((marked) => {
      const { node } = marked;
      const set = byNode.get(node.id) ?? [];
      const removed = removals.includes(node.id);
      if (!removed && set.length === 0) return marked;
      const known = new Map(node.params.map((one) => [one.name, one]));
      for (const one of set)
        known.set(one.param, {
          name: one.param,
          label: known.get(one.param)?.label ?? paramLabel(one.param),
          value: typeof one.value === "object" ? JSON.stringify(one.value) : String(one.value),
          cut: false,
        });
      const mark: Mark = removed ? "removed" : marked.mark === "added" ? "added" : "changed";
      return { ...marked, mark, node: { ...node, params: [...known.values()] } };
    }),
  };
}
