/** Which nodes of the picture a text beside it points at, and which ran for an answer. */
import { createContext, useContext, useMemo, useState } from "react";
import type { CanvasView, Trace } from "../api/types";

export type RunStep = Pick<Trace["steps"][number], "node_id" | "input" | "output" | "error" | "duration_ms">;

interface Highlight {
  ids: readonly string[];
  /** Point at these nodes; at none again with an empty list. */
  light: (ids: readonly string[]) => void;
  /** Show them: on a phone the picture is another view. */
  show: (ids: readonly string[]) => void;
  /** What ran for an answer, in order; null while none is shown. */
  run: readonly RunStep[] | null;
  showRun: (run: readonly RunStep[] | null) => void;
}

const NOTHING: Highlight = { ids: [], light: () => {}, show: () => {}, run: null, showRun: () => {} };
export const HighlightContext = createContext<Highlight>(NOTHING);

/** The state of a picture that can be pointed at; `toPicture` brings it into view. */
export function useHighlight(toPicture: () => void): Highlight {
  const [lit, light] = useState<readonly string[]>([]);
  const [pinned, pin] = useState<readonly string[]>([]);
  const [run, setRun] = useState<readonly RunStep[] | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it only calls setters
  return useMemo(
    () => ({
      ids: lit.length > 0 ? lit : pinned,
      light,
      show: (ids) => {
        pin((before) => (before === ids ? [] : ids));
        toPicture();
      },
      run,
      showRun: (next) => {
        setRun(next);
        if (next) toPicture();
      },
    }),
    [lit, pinned, run],
  );
}

/** Properties of a button that points at nodes while it is hovered or focused, and shows them when it is pressed. */
export function usePointer() {
  const { light, show } = useContext(HighlightContext);
  return (ids: readonly string[]) => ({
    onMouseEnter: () => light(ids),
    onMouseLeave: () => light([]),
    onFocus: () => light(ids),
    onBlur: () => light([]),
    onClick: () => show(ids),
  });
}

const letters = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, "");

/**
 * The nodes that ran for an answer, in order. Agentflows tell their steps; of a chatflow every node runs before the one
 * that it feeds, but a tool only where it was used.
 */
export function ranFor(trace: Trace, graph: CanvasView): RunStep[] {
  if (trace.steps.length > 0) return trace.steps;
  if (graph.kind !== "CHATFLOW") return [];
  const used = new Map(trace.used_tools.map((one) => [letters(one.tool), one]));
  const of = (node: CanvasView["nodes"][number]) => used.get(letters(node.name)) ?? used.get(letters(node.label));
  const left = graph.nodes.filter((node) => node.kind === "node" && (!/tool/i.test(node.category) || of(node)));
  const found: RunStep[] = [];
  while (left.length > 0) {
    const waits = (id: string) =>
      graph.edges.some((edge) => edge.target === id && left.some((one) => one.id === edge.source));
    const next = Math.max(
      0,
      left.findIndex((node) => !waits(node.id)),
    );
    for (const node of left.splice(next, 1)) {
      const tool = of(node);
      found.push({
        node_id: node.id,
        input: tool?.input ?? null,
        output: tool?.output ?? null,
        error: tool?.error ?? "",
        duration_ms: null,
      });
    }
  }
  return found;
}

/** The answer of a step where it has one, else its output as JSON. */
export function outputText(output: unknown): string {
  if (typeof output === "string") return output;
  if (output && typeof output === "object" && "content" in output && typeof output.content === "string")
    return output.content;
  return output === null || output === undefined ? "" : JSON.stringify(output);
}
