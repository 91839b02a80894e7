/** What a model is writing, told in sentences, and the nodes that it has named so far. */
import { Allow, parse } from "partial-json";
import type { CanvasNode } from "../api/types";
import { bareNode, paramLabel } from "../flow/layout";
import { t } from "../i18n";

export interface Writing {
  /** What the model is at; empty when the text says nothing yet. */
  sentence: string;
  nodes: CanvasNode[];
}

/** What a node is chosen for, by its name. */
const CHOICES: [RegExp, string][] = [
  [/embedding/i, "Choosing the embeddings"],
  [
    /^(pinecone|chroma|faiss|qdrant|weaviate|milvus|postgres|pgvector|memoryVectorStore|documentStoreVS)|vector/i,
    "Choosing a vector store",
  ],
  [/memory|redisBacked|mem0|zep/i, "Choosing how it remembers"],
  [/^chat|^llm|openai|anthropic|mistral|ollama|gemini|bedrock/i, "Choosing a language model"],
  [
    /loader|scraper|cheerio|playwright|pdf|csv|docx|textFile|plainText|documentStore|splitter/i,
    "Choosing where the knowledge comes from",
  ],
  [/retriev/i, "Choosing how it finds knowledge"],
  [/tool$|calculator|serp|search|brave|tavily|request|mcp/i, "Choosing a tool"],
  [/agent|chain|sequential|supervisor/i, "Choosing how it answers"],
];
/** The field that is being written, and what it is about. */
const FIELDS: Record<string, string> = {
  goal: "Understanding your request",
  operation: "Understanding your request",
  intent: "Understanding your request",
  title: "Understanding your request",
  questions: "Thinking about what is still open",
  flow_name: "Choosing a name",
  removals: "Choosing what is removed",
  kept: "Choosing what stays as it is",
  values: "Writing the texts and settings",
  steps: "Writing down the steps",
  approaches: "Comparing approaches",
  credential_requirements: "Checking which credentials are needed",
  parts: "Checking your request part by part",
  criteria: "Deciding how to tell that it works",
  success_criteria: "Deciding how to tell that it works",
  tests: "Thinking of test questions",
  test_questions: "Thinking of test questions",
  reasons: "Judging the answers",
  evidence: "Judging the answers",
};

interface Named {
  node_id?: unknown;
  node_name?: unknown;
  op_type?: unknown;
  param_name?: unknown;
}

/** Read the unfinished JSON of a plan or of ops; anything else says nothing. */
export function writingOf(text: string): Writing {
  const start = text.indexOf("{");
  if (start < 0) return { sentence: "", nodes: [] };
  let value: unknown;
  try {
    value = parse(text.slice(start), Allow.ALL);
  } catch {
    return { sentence: "", nodes: [] };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { sentence: "", nodes: [] };
  const fields = value as Record<string, unknown>;
  const field = Object.keys(fields).at(-1) ?? "";
  const listed = (name: string): Named[] => (Array.isArray(fields[name]) ? (fields[name] as Named[]) : []);
  const ops = listed("ops");
  const named = [...listed("nodes"), ...ops.filter((op) => op?.op_type === "AddNode")].filter(isNamed);
  const last = listed(field).at(-1);
  return {
    sentence: field === "ops" ? opSentence(last) : field === "nodes" ? choice(last?.node_name) : t(FIELDS[field] ?? ""),
    nodes: named.map(ghost),
  };
}

const isNamed = (one: Named | null | undefined): one is { node_id: string; node_name: string } =>
  typeof one?.node_id === "string" && typeof one.node_name === "string" && one.node_name.length > 2;

function choice(name: unknown): string {
  if (typeof name !== "string" || !name) return t("Choosing the nodes");
  return t(CHOICES.find(([pattern]) => pattern.test(name))?.[1] ?? "Choosing the nodes");
}

function opSentence(op: Named | undefined): string {
  const node = typeof op?.node_id === "string" ? paramLabel(op.node_id.replace(/_\d+$/, "")) : "";
  if (op?.op_type === "AddNode" && node) return t("Adding {{node}}", { node });
  if (op?.op_type === "SetParam" && node) return t("Setting up {{node}}", { node });
  if (op?.op_type === "Connect") return t("Connecting the nodes");
  if (op?.op_type === "RemoveNode") return t("Removing what is not needed");
  return t("Writing the change");
}

const ghost = ({ node_id, node_name }: { node_id: string; node_name: string }): CanvasNode =>
  bareNode(node_id, node_name, { label: paramLabel(node_name) });
