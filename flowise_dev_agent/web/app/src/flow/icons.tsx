/** Icons of node types as the Flowise server has them, asked for together and kept while the page is open. */
import { useContext, useEffect, useSyncExternalStore } from "react";
import { api } from "../api/client";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { IconsContext } from "./iconsContext";
import { insideOf } from "./layout";

const known = new Map<string, string>();
const asked = new Set<string>();
const listeners = new Set<() => void>();
/** Types of one request, and how long others are waited for. */
const MOST = 60;
const TOGETHER_MS = 30;
const coming: string[] = [];

async function ask(): Promise<void> {
  const names = coming.splice(0, MOST);
  if (coming.length > 0) void ask();
  const { data } = await api.GET("/nodes/icons", { params: { query: { names } } }).catch(() => ({ data: undefined }));
  for (const [name, icon] of Object.entries(data?.icons ?? {})) known.set(name, icon);
  for (const listener of listeners) listener();
}

function want(name: string): void {
  if (asked.has(name)) return;
  asked.add(name);
  coming.push(name);
  if (coming.length === 1) setTimeout(ask, TOGETHER_MS);
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The icon of a type, or nothing until it is there. */
function TypeIcon({ name, instead = null }: { name: string; instead?: string | null }) {
  const can = useContext(IconsContext);
  const icon = useSyncExternalStore(subscribe, () => known.get(name));
  useEffect(() => {
    if (can) want(name);
  }, [can, name]);
  return icon ? <img src={icon} alt="" draggable={false} /> : instead && <span>{instead}</span>;
}

/** Of the steps of a flow, which have no icon on the server: strokes in a square of 24. */
const STEPS: Record<string, string> = {
  startAgentflow: "M8 5l11 7-11 7z",
  agentAgentflow: "M6 8h12v10H6zM12 8V4M9 12v2M15 12v2M3 12v3M21 12v3",
  llmAgentflow: "M12 3l2.2 6.8L21 12l-6.8 2.2L12 21l-2.2-6.8L3 12l6.8-2.2z",
  conditionAgentflow: "M4 12h6l8-6M10 12l8 6M15 5.5h3.5V9M15 18.5h3.5V15",
  conditionAgentAgentflow: "M4 12h6l8-6M10 12l8 6M15 5.5h3.5V9M15 18.5h3.5V15",
  humanInputAgentflow: "M12 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8M4 20c1-5 4-6 8-6s7 1 8 6",
  loopAgentflow: "M20 12a8 8 0 1 1-3-6.2M20 3v4h-4",
  directReplyAgentflow: "M4 5h16v11H10l-4 4v-4H4z",
  toolAgentflow: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5l-7 7-3-3 7-7a4 4 0 0 1 1-4z",
  retrieverAgentflow: "M5 6c0-3 14-3 14 0v12c0 3-14 3-14 0zM5 6c0 3 14 3 14 0M5 12c0 3 14 3 14 0",
  httpAgentflow: "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M3 12h18M12 3c4 5 4 13 0 18c-4-5-4-13 0-18",
  customFunctionAgentflow: "M8 6l-5 6 5 6M16 6l5 6-5 6M14 4l-4 16",
  executeFlowAgentflow: "M4 5h7v6H4zM13 13h7v6h-7zM11 8h5v5",
  iterationAgentflow: "M4 7h12M4 12h12M4 17h8M18 14v6M21 17l-3 3-3-3",
};

/** The icon of a node, else two letters. */
export function NodeIcon({ node }: { node: CanvasNode }) {
  const step = STEPS[node.name];
  return (
    <span className="fnode-icon" aria-hidden="true">
      {step ? (
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={step} />
        </svg>
      ) : (
        <TypeIcon name={node.name} instead={initials(node.label)} />
      )}
    </span>
  );
}

/** What works inside of a step: the mark of its model's provider, its tools, and if it remembers. */
export function InsideOf({ node, bare = false }: { node: CanvasNode; bare?: boolean }) {
  const { model, tools, memory } = insideOf(node);
  if (!model && tools.length === 0 && !memory) return null;
  return (
    <span className="fnode-inside" aria-hidden={bare}>
      {model && (
        <span className="inside-chip">
          <TypeIcon name={model.type} />
          {!bare && <span className="clip">{model.name}</span>}
        </span>
      )}
      {tools.map((name) => (
        <span key={name} className="inside-chip" title={name}>
          <TypeIcon name={name} instead={initials(name)} />
        </span>
      ))}
      {memory && !bare && (
        <span className="inside-chip" title={t("Memory")}>
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d="M12 4a8 8 0 1 1-8 8M12 7v5l3 2M4 5v4h4" />
          </svg>
        </span>
      )}
    </span>
  );
}

/** Two letters. */
export function initials(label: string): string {
  const words = label.split(/[\s_-]+|(?<=[a-z])(?=[A-Z])/).filter(Boolean);
  return (words.length > 1 ? `${words[0]?.[0] ?? ""}${words[1]?.[0] ?? ""}` : label.slice(0, 2)).toUpperCase();
}
