import { expect, it } from "vitest";
import { bareNode } from "./layout";
import { edge } from "./sample";
import { variablesFor } from "./variables";

const rows = (name: string, value: unknown) => ({ name, label: name, value: JSON.stringify(value), cut: false });
const step = (id: string, more = {}) => bareNode(id, id.replace(/_\d+$/, ""), { kind: "agent", ...more });

const start = step("startAgentflow_0", {
  params: [rows("startState", [{ key: "city" }]), rows("formInputTypes", [{ name: "email" }])],
});
const write = step("llmAgentflow_0", { label: "Write" });
const code = step("customFunctionAgentflow_0", {
  params: [rows("customFunctionInputVariables", [{ variableName: "total" }])],
});
const later = step("directReplyAgentflow_0");
const flow = {
  nodes: [start, write, code, later],
  edges: [edge(start.id, write.id), edge(write.id, code.id), edge(code.id, later.id)],
};
const names = (...given: Parameters<typeof variablesFor>) => variablesFor(...given).map(({ name }) => name);

it("offers to a text what was said, the form, the state, earlier steps and what the server has", () => {
  const offered = names(code, flow, [{ name: "shop" }], undefined);
  expect(offered).toEqual(
    expect.arrayContaining(["question", "$form.email", "$flow.state.city", "llmAgentflow_0", "$vars.shop"]),
  );
  expect(offered).not.toContain("directReplyAgentflow_0");
  expect(offered).not.toContain("customFunctionAgentflow_0");
});

it("offers to a program what it is given, and no step by braces", () => {
  const offered = names(code, flow, [{ name: "shop" }], "code");
  expect(offered).toEqual(["$total", "$flow.input", "$flow.state.city", "$flow.sessionId", "$vars.shop"]);
});

it("offers a node of a chatflow no step", () => {
  const chain = bareNode("llmChain_0", "llmChain");
  expect(names(chain, { nodes: [chain], edges: [] }, [], undefined)).toContain("question");
  expect(names(chain, { nodes: [chain, write], edges: [] }, [], undefined)).not.toContain("llmAgentflow_0");
});
