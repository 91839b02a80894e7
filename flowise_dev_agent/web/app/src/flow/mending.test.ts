import { expect, it } from "vitest";
import type { Finding, FlowPreview } from "../api/types";
import { bareNode } from "./layout";
import { blocking, findingsAtNodes, placeOf, saidAt } from "./mending";
import { fromFlow } from "./Settings";
import { edge } from "./sample";

const finding = (code: string, more: Partial<Finding> = {}): Finding => ({
  code,
  severity: "error",
  message: `${code}.`,
  params: {},
  detail: "",
  where: "humanInputAgentflow_0",
  field: "",
  allowed: [],
  hint: "",
  op_index: null,
  op_type: "",
  origin: "new",
  ...more,
});
const port = (id: string, label = id) => ({ id, name: label, label, type: "", optional: false, list: false });
const ask = bareNode("humanInputAgentflow_0", "humanInputAgentflow", {
  kind: "agent",
  inputs: [port("humanInputAgentflow_0")],
  outputs: [port("humanInputAgentflow_0-output-0", "proceed"), port("humanInputAgentflow_0-output-1", "reject")],
});

it("holds up a build for new errors only, and not for a credential that is asked for later", () => {
  const findings = [
    finding("REQUIRED_PARAM_MISSING", { field: "humanInputDescriptionType" }),
    finding("BRANCH_LEADS_NOWHERE", { severity: "warning" }),
    finding("NESTED_CREDENTIAL_UNBOUND"),
    finding("BAD_OPTION", { origin: "base" }),
    finding("UNKNOWN_NODE", { op_index: 2 }),
  ];
  expect(blocking({ findings } as FlowPreview).map((one) => one.code)).toEqual(["REQUIRED_PARAM_MISSING"]);
  // A node is marked for what was wrong before, too, unless it may stay.
  const old = [finding("BAD_OPTION", { origin: "base" }), finding("OLD", { origin: "base", severity: "warning" })];
  expect(findingsAtNodes({ findings: old } as FlowPreview).map((one) => one.code)).toEqual(["BAD_OPTION"]);
});

it("says of a branch without a step which one it is, and asks for the step", () => {
  const open = finding("BRANCH_LEADS_NOWHERE", { field: "1", severity: "warning" });
  expect(placeOf(open, ask)).toMatchObject({ kind: "output", port: ask.outputs[1] });
  expect(saidAt(open, ask)).toBe("reject: BRANCH_LEADS_NOWHERE.");
  expect(placeOf(finding("REQUIRED_PARAM_MISSING", { field: "humanInputDescriptionType" }), ask)).toBeUndefined();
});

it("offers the steps before a loop, and the keys of the state that the start declares", () => {
  const state = JSON.stringify([{ key: "answer", value: "" }]);
  const start = bareNode("startAgentflow_0", "startAgentflow", {
    kind: "agent",
    params: [{ name: "startState", label: "State", value: state, cut: false }],
  });
  const write = bareNode("llmAgentflow_0", "llmAgentflow", { kind: "agent", label: "Write" });
  const loop = bareNode("loopAgentflow_0", "loopAgentflow", { kind: "agent" });
  const later = bareNode("directReplyAgentflow_0", "directReplyAgentflow", { kind: "agent" });
  const flow = {
    nodes: [start, write, loop, later],
    edges: [edge(start.id, write.id), edge(write.id, loop.id), edge(write.id, later.id)],
  };
  expect(fromFlow("steps", loop.id, flow)).toEqual([{ value: "llmAgentflow_0-Write", label: "Write" }]);
  expect(fromFlow("state", write.id, flow)).toEqual([{ value: "answer", label: "answer" }]);
  expect(fromFlow(undefined, write.id, flow)).toEqual([]);
});
