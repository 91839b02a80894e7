/** What a text or a program of a node can name: of the conversation, of steps before it, of the server. */
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import type { Variable } from "../ui/CodeField";
import { type Building, isStep } from "./building";
import { rowsOf } from "./layout";

type Flow = Pick<Building, "nodes" | "edges">;

export function variablesFor(
  node: CanvasNode,
  flow: Flow,
  stored: { name: string }[],
  format: string | undefined,
): Variable[] {
  const program = format === "code";
  const start = flow.nodes.find((one) => one.name === "startAgentflow");
  const keys = start ? named(start, "startState", "key") : [];
  const own = program
    ? rowsOf(node, `${node.name.replace(/Agentflow$/, "")}InputVariables`).map(({ variableName }) => ({
        name: `$${String(variableName ?? "").replace(/^\$/, "")}`,
        label: t("Given to the program"),
      }))
    : [];
  const said = program
    ? [{ name: "$flow.input", label: t("What the person wrote") }]
    : [
        { name: "question", label: t("What the person wrote") },
        { name: "chat_history", label: t("The conversation so far") },
        { name: "file_attachment", label: t("Text of the files that came with it") },
      ];
  const fields = program || !start ? [] : named(start, "formInputTypes", "name");
  const steps = program ? [] : earlier(node, flow);
  return [
    ...own,
    ...said,
    ...(isStep(node) && !program ? [{ name: "current_date_time", label: t("Date and time") }] : []),
    ...fields.map((name) => ({ name: `$form.${name}`, label: t("Of the form") })),
    ...(node.parent && !program ? [{ name: "$iteration", label: t("The item of this round") }] : []),
    ...steps.map(({ id, label }) => ({ name: id, label: t("Answer of {{node}}", { node: label }) })),
    ...keys.map((key) => ({ name: `$flow.state.${key}`, label: t("State of the flow") })),
    { name: "$flow.sessionId", label: t("Id of the conversation") },
    ...stored.map(({ name }) => ({ name: `$vars.${name}`, label: t("Variable of the server") })),
  ];
}

const named = (node: CanvasNode, list: string, field: string): string[] =>
  rowsOf(node, list)
    .map((row) => String(row[field] ?? ""))
    .filter(Boolean);

/** The steps that may have run before a step, without the start. */
export function earlier(node: CanvasNode, { nodes, edges }: Flow): CanvasNode[] {
  if (!isStep(node)) return [];
  const before = new Set([node.id, node.parent].filter(Boolean));
  for (const one of before) for (const edge of edges) if (edge.target === one) before.add(edge.source);
  return nodes.filter((one) => before.has(one.id) && one.id !== node.id && one.name !== "startAgentflow");
}
