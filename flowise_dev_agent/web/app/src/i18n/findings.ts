/**
 * Findings of the checks in the person's language. The service words each for models and for programmers; who reads
 * English sees that, who does not gets a plain sentence by the finding's code.
 */
import { language, t } from ".";
import { said } from "./sentences";

export const FINDINGS: Record<string, string> = {
  ADDRESS_WITHOUT_SCHEME: "“{{field}}” needs a whole address, with https://.",
  ANCHOR_OCCUPIED: "Several nodes are connected to an input that takes one.",
  BAD_JSON: "“{{field}}” is not valid JSON.",
  BAD_NODE_ID: "The id of the node has signs that Flowise cannot read.",
  BAD_OPTION: "“{{field}}” has a value that is not one of its options.",
  BAD_PARENT: "The node is in an iteration that does not fit.",
  BAD_REFERENCE: "“{{field}}” may only refer to nodes.",
  BAD_REGULAR_EXPRESSION: "The regular expression cannot be read and never matches.",
  BAD_SCHEDULE: "The schedule cannot be read: the flow would never start.",
  BAD_SOURCE_HANDLE: "A connection starts where the node has no output.",
  BAD_TARGET_HANDLE: "A connection ends where the node has no input.",
  BAD_TOOL_ID: "The custom tool must be chosen from the list.",
  BAD_TOOL_NAME: "The name of a tool may have only letters, digits, _ and -, at most 64.",
  BAD_ZOD_SCHEMA: "The schema in “{{field}}” cannot be read.",
  BRANCHES_OUTDATED: "The node has another number of branches than “{{field}}” asks for.",
  BRANCH_HAS_TWO_TARGETS: "A branch leads to several steps; some would run even when it is not taken.",
  BRANCH_LEADS_NOWHERE: "A branch leads nowhere: connect it to a step that answers.",
  CHUNK_OVERLAP: "The overlap of the pieces must be smaller than the pieces.",
  CONDITION_TEXT_CHANGED: "The text in “{{field}}” is compared without its Markdown.",
  CONDITION_TYPE_MISMATCH: "A condition compares values of different types.",
  CREDENTIAL_MISPLACED: "The credential is where the server does not read it: choose it again.",
  CREDENTIAL_NOT_UUID: "The credential must be chosen from the list; otherwise every question fails.",
  CREDENTIAL_TYPE_MISMATCH: "The node needs a credential of another type.",
  CREDENTIAL_UNBOUND: "The node needs a credential and has none.",
  CREDENTIAL_UNKNOWN: "This Flowise server does not have the credential: choose another one.",
  CYCLE: "The connections form a circle.",
  DANGLING_EDGE: "A connection leads to no node.",
  DATA_FIELD_MISSING: "Something that Flowise needs of the node is missing.",
  DEAD_END: "Nothing uses what this node gives.",
  DUPLICATE_EDGE: "A node is connected twice to the same input.",
  DUPLICATE_NODE_ID: "Two nodes have the same id.",
  DUPLICATE_TOOL_NAME: "Two tools of the agent have the same name.",
  EDGE_ACROSS_ITERATION: "A connection crosses the border of an iteration.",
  EDGE_WITHOUT_REF: "A connection is drawn that the server does not see: connect it again.",
  EMPTY_FLOW: "The flow is empty.",
  EMPTY_ITERATION: "The iteration contains no nodes, so it does nothing.",
  ENDING_NODE_KIND: "The flow ends in a node that does not answer.",
  ENDING_NODE_OUTPUT: "The last node gives something else than its answer.",
  FORM_FIELD_UNREAD: "Nothing uses a field of the form.",
  ISOLATED_NODE: "The node is connected to nothing and is never used.",
  KIND_MISMATCH: "The node belongs into another kind of flow.",
  KIND_UNKNOWN: "Flowise does not know this kind of flow.",
  LIST_ANCHOR_NOT_LIST: "“{{field}}” takes several nodes and holds a text: connect them again.",
  LOOP_LIMIT: "The number of repetitions must be a whole number from 1 on.",
  LOOP_TARGET_UNKNOWN: "The loop leads to a step that is not in the flow.",
  LOOP_WITHOUT_EXIT: "The loop is no repetition, or never ends before its limit.",
  MODEL_WITHOUT_TOOLS: "The model cannot call tools, and its agent has some.",
  MULTIPLE_ENDING_NODES: "Several nodes end the flow; only the last one would answer.",
  MULTIPLE_START_NODES: "The flow has several start nodes: remove all but one.",
  NESTED_CONFIG_MISSING: "The settings of a part of the node are missing.",
  NESTED_CREDENTIAL_UNBOUND: "A part of the node needs a credential and has none.",
  NESTED_NODE_MISSING: "A row does not say which node it is about.",
  NESTED_NODE_UNKNOWN: "The server does not have what is chosen in “{{field}}”.",
  NODE_ID_MISMATCH: "The node has two ids that differ.",
  NOT_AN_ID: "“{{field}}” must be chosen from the list.",
  NOT_A_BOOLEAN: "“{{field}}” needs yes or no.",
  NOT_A_LIST: "“{{field}}” needs a list.",
  NOT_A_NUMBER: "“{{field}}” needs a number.",
  NOT_A_TEXT: "“{{field}}” needs a text.",
  NO_ENDING_NODE: "No node ends the flow: nothing is connected.",
  NO_START_NODE: "The flow has no start node.",
  NUMBER_OUT_OF_RANGE: "“{{field}}” has a number that is too small or too large.",
  OUTPUT_SELECTION_MISMATCH: "A connection takes another output than the node is set to give.",
  PROMPT_BRACES: "The braces in “{{field}}” cannot be read as a template.",
  PROMPT_VALUE_MISSING: "“{{field}}” lacks a placeholder that is filled in when it runs.",
  PROMPT_WITHOUT_QUESTION: "The prompt has no placeholder for the question, so the model never reads it.",
  QUESTION_AFTER_HUMAN_INPUT: "“{{field}}” uses the question, which is empty after a person has decided.",
  REF_TO_MISSING_NODE: "“{{field}}” refers to a node that is not in the flow.",
  REF_WITHOUT_EDGE: "“{{field}}” refers to a node that is not connected to it.",
  REQUIRED_ANCHOR_UNCONNECTED: "Something has to be connected to “{{field}}”.",
  REQUIRED_PARAM_MISSING: "“{{field}}” needs a value.",
  SECRET_IN_INPUTS: "“{{field}}” contains a secret, which everybody could read in Flowise: use a credential.",
  SHAPE: "The text is not a flow of Flowise.",
  SHARED_MODEL: "A model feeds a node and the one that uses its answer: the server fails. Give each its own.",
  SINGLE_ANCHOR_IS_LIST: "“{{field}}” takes one node and holds a list.",
  STEP_NEVER_RUNS: "This step never runs: it waits for branches that are never taken together.",
  STEP_RUNS_TWICE: "This step runs twice: put the steps before it in a row.",
  TEXT_STALLS_SERVER: "“{{field}}” has many opening braces without closing ones; the server would hang on it.",
  TYPE_MISMATCH: "A node is connected to an input that needs something else.",
  UNDECLARED_STATE: "“{{field}}” reads a state that nothing has set before.",
  UNKNOWN_NODE_NAME: "The server does not have this type of node.",
  UNKNOWN_OUTPUT: "The chosen output does not exist.",
  UNKNOWN_PARAM: "The node has no field “{{field}}”; the server ignores it.",
  UNKNOWN_TOOL: "The server does not have this tool.",
  UNKNOWN_VARIABLE: "“{{field}}” uses a variable that does not exist.",
  UNREACHED_NODE: "Nothing leads to this node; the server refuses to run such a flow.",
  UNVERIFIED_NODE: "The type of this node is not known here; it was in the flow before.",
  VARIABLE_NOT_SET: "“{{field}}” uses the output of a step that may not have run by then.",
  VARIABLE_WITHOUT_FIELD: "“{{field}}” uses a variable without saying which of its values.",
  VECTOR_STORE_WITHOUT_DOCUMENT:
    "The vector store has no source of its own: it has only what was put into it before, if anything.",
  VERSION_DRIFT: "The node is of another version than the server has.",
  WEBHOOK_FIELD_OPTIONAL: "A request that leaves out a field leaves the variable in the text as it is.",
};

interface Found {
  code: string;
  message: string;
  hint?: string | null;
  field?: string | null;
}

/** What is wrong, and what to do where that is known in this language. */
export function found({ code, message, hint, field }: Found): { message: string; hint: string } {
  const sentence = FINDINGS[code];
  const words = said(message);
  if (language() === "en" || words !== message || !sentence) return { message: words, hint: said(hint ?? "") };
  const advice = said(hint ?? "");
  return { message: t(sentence, { field: field ?? "" }), hint: advice === hint ? "" : advice };
}
