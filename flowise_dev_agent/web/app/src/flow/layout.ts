/** Positions and sizes on the canvas. Sizes are computed, not measured. */
import type { CanvasNode, CanvasView } from "../api/types";
import { t } from "../i18n";
import { plural } from "../ui/format";

export const NODE_WIDTH = 280;
export const HEADER = 46;
const ROW = 24;
export const MAX_PARAMS = 4;
const PADDING = 8;
const AGENT_HEIGHT = 68;
const AGENT_MIN_WIDTH = 100;
/** Beside the title of a step: its icon and the paddings. */
const AGENT_ROOM = 62;
const CHARACTER = 7.8;

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A node of which nothing else is known, at the origin. */
export const bareNode = (id: string, name: string, more: Partial<CanvasNode> = {}): CanvasNode => ({
  id,
  name,
  label: name,
  category: name,
  kind: "node",
  version: "",
  color: "",
  parent: "",
  x: 0,
  y: 0,
  width: null,
  height: null,
  inputs: [],
  outputs: [],
  credential: "",
  note: "",
  params: [],
  ...more,
});

/** The parameters that a box shows; a click on the node shows all. */
export const shownParams = (node: CanvasNode) => node.params.slice(0, MAX_PARAMS);

/** "System Message" of `systemMessage`, "Temperature" of `llmModelConfig.temperature`. */
export function paramLabel(name: string): string {
  const words = (name.split(".").at(-1) ?? name).replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The parameter of a path such as `llmModelConfig.temperature`. */
export const rootOf = (path: string): string => path.split(/[.[]/)[0] ?? path;

/** Width and height of a node's box, in editor pixels. */
export function sizeOf(node: CanvasNode): { width: number; height: number } {
  if (node.kind === "note" || node.kind === "iteration")
    return { width: Math.max(node.width ?? 0, 160), height: Math.max(node.height ?? 0, 60) };
  if (node.kind === "agent") {
    const width = Math.max(node.width ?? AGENT_MIN_WIDTH, Math.round(AGENT_ROOM + CHARACTER * node.label.length));
    return { width, height: AGENT_HEIGHT + (isBranching(node) ? ROW * node.outputs.length : 0) };
  }
  const rows = node.inputs.length + shownParams(node).length + node.outputs.length + (hasMoreParams(node) ? 1 : 0);
  return { width: NODE_WIDTH, height: HEADER + 2 * PADDING + ROW * rows };
}

/** True for a step that goes on in one of several ways: their names are the last rows of its box. */
export const isBranching = (node: CanvasNode): boolean => node.kind === "agent" && node.outputs.length > 1;

/** True when the box does not show all parameters. */
export const hasMoreParams = (node: CanvasNode): boolean => node.params.length > MAX_PARAMS;

/**
 * Distance from the top of the box to the middle of a port. Agentflow nodes spread their ports over the side; branches
 * are beside their names.
 */
export function portTop(node: CanvasNode, side: "inputs" | "outputs", index: number): number {
  if (node.kind === "agent" || node.kind === "iteration") {
    const { height } = sizeOf(node);
    if (side === "outputs" && isBranching(node)) return AGENT_HEIGHT - PADDING / 2 + ROW * (index + 0.5);
    return (height * (index + 1)) / (node[side].length + 1);
  }
  const before = side === "inputs" ? 0 : node.inputs.length + shownParams(node).length + (hasMoreParams(node) ? 1 : 0);
  return HEADER + PADDING + ROW * (before + index) + ROW / 2;
}

const held = (node: CanvasNode, name: string) => node.params.find((one) => one.name === name)?.value ?? "";

/** The rows of a list that a node holds. */
export function rowsOf(node: CanvasNode, name: string): Record<string, unknown>[] {
  try {
    const rows: unknown = JSON.parse(held(node, name) || "[]");
    return Array.isArray(rows) ? rows : [];
  } catch {
    return [];
  }
}

/** Types of a step's model and tools, the name of the model, and true if the step remembers the conversation. */
export function insideOf(node: CanvasNode) {
  if (node.kind === "node") return { model: null, tools: [], memory: false };
  const owner = node.params.find((one) => /^\w+Model$/.test(one.name) && one.value);
  const name = owner && /"model(?:Name)?":"([^"]+)"/.exec(held(node, `${owner.name}Config`))?.[1];
  const chosen = [
    ...node.params.flatMap(({ name: param }) =>
      /Tools$/.test(param)
        ? rowsOf(node, param).map((row) => Object.values(row).find((one) => typeof one === "string"))
        : [],
    ),
    held(node, "toolAgentflowSelectedTool"),
  ];
  return {
    model: owner ? { type: owner.value, name: name ?? owner.value } : null,
    tools: [...new Set(chosen.filter((one): one is string => Boolean(one)))],
    memory: node.params.some((one) => /EnableMemory$/.test(one.name) && one.value === "true"),
  };
}

const MARKUP = /<[^>]+>/g;
/** The last name of a variable such as `{{ $flow.state.next }}`. */
const VARIABLE = /\{\{\s*(?:[^{}]*[.$])?(\w+)\s*\}\}/g;
const BRANCH = 30;

/** The name of a branch: the scenario, what is compared, or what the person decides; "" where there is one way only. */
export function branchOf(node: CanvasNode, index: number): string {
  const port = node.outputs[index];
  if (!port || node.outputs.length < 2 || node.kind === "node") return "";
  const compared = rowsOf(node, "conditions");
  const row = compared[index];
  const said =
    row && (row.value1 || row.value2)
      ? [row.value1, row.operation, row.value2].map((one) => String(one ?? "")).join(" ")
      : compared.length > 0 && index === compared.length
        ? t("else")
        : String(rowsOf(node, "conditionAgentScenarios")[index]?.scenario ?? "");
  const words = said.replace(MARKUP, "").replace(VARIABLE, "$1").replace(/\s+/g, " ").trim() || port.label;
  return words.length > BRANCH ? `${words.slice(0, BRANCH)}…` : words;
}

/** The node to which a step leads back; undefined for others. */
export function backTo(node: CanvasNode, nodes: Iterable<CanvasNode>): CanvasNode | undefined {
  const to = held(node, "loopBackToNode");
  if (!to) return undefined;
  for (const one of nodes) if (to === one.id || to.startsWith(`${one.id}-`)) return one;
  return undefined;
}

/** Boxes by node id, in canvas coordinates. A node inside an iteration is positioned from the iteration's corner. */
export function boxesOf(nodes: readonly CanvasNode[]): Map<string, Box> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const boxes = new Map<string, Box>();
  for (const node of nodes) {
    let { x, y } = node;
    const seen = new Set([node.id]);
    for (let parent = byId.get(node.parent); parent && !seen.has(parent.id); parent = byId.get(parent.parent)) {
      seen.add(parent.id);
      x += parent.x;
      y += parent.y;
    }
    boxes.set(node.id, { x, y, ...sizeOf(node) });
  }
  return boxes;
}

/** By which key one goes where: the axis, and its direction. */
const WAYS: Record<string, [along: "x" | "y", across: "x" | "y", sign: 1 | -1]> = {
  ArrowRight: ["x", "y", 1],
  ArrowLeft: ["x", "y", -1],
  ArrowDown: ["y", "x", 1],
  ArrowUp: ["y", "x", -1],
};
const middle = ({ x, y, width, height }: Box) => ({ x: x + width / 2, y: y + height / 2 });

/** The nearest box in the direction of an arrow key; what is aside counts twice. Null where there is none. */
export function nextTo(boxes: Map<string, Box>, id: string, key: string): string | null {
  const [way, here] = [WAYS[key], boxes.get(id)];
  if (!way || !here) return null;
  const [along, across, sign] = way;
  const from = middle(here);
  let found: string | null = null;
  let nearest = Infinity;
  for (const [other, box] of boxes) {
    const to = middle(box);
    const ahead = (to[along] - from[along]) * sign;
    const distance = ahead + 2 * Math.abs(to[across] - from[across]);
    if (ahead > 0 && distance < nearest) [found, nearest] = [other, distance];
  }
  return found;
}

/** The box at which a flow begins: the leftmost one. */
export function firstOf(boxes: Map<string, Box>): string | null {
  const [first] = [...boxes].toSorted(([, one], [, other]) => one.x - other.x || one.y - other.y);
  return first?.[0] ?? null;
}

/** The smallest box around all boxes. */
export function bounds(boxes: Iterable<Box>): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const box of boxes) {
    left = Math.min(left, box.x);
    top = Math.min(top, box.y);
    right = Math.max(right, box.x + box.width);
    bottom = Math.max(bottom, box.y + box.height);
  }
  if (left > right) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: left, y: top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) };
}

/** The colour class of a node's category; grey when unknown. */
export function tone(node: Pick<CanvasNode, "category" | "kind">): string {
  if (node.kind === "note") return "note";
  const category = node.category.toLowerCase();
  const found = TONES.find(([word]) => category.includes(word));
  return found ? found[1] : "plain";
}

const TONES: [string, string][] = [
  ["chat model", "model"],
  ["llm", "model"],
  ["embedding", "model"],
  ["memory", "memory"],
  ["tool", "tool"],
  ["retriever", "data"],
  ["vector", "data"],
  ["document", "data"],
  ["splitter", "data"],
  ["record", "data"],
  ["agent", "agent"],
  ["chain", "chain"],
  ["engine", "chain"],
  ["prompt", "prompt"],
  ["parser", "prompt"],
];

/** The flow as text, for screen readers. */
export function inWords(view: CanvasView): string {
  const nodes = view.nodes.filter((node) => node.kind !== "note");
  const names = nodes.slice(0, 12).map((node) => node.label);
  return t("{{nodes}}, {{connections}}: {{names}}", {
    nodes: plural(nodes.length, "node"),
    connections: plural(view.edges.length, "connection"),
    names: [...names, ...(nodes.length > 12 ? ["…"] : [])].join(", "),
  });
}
