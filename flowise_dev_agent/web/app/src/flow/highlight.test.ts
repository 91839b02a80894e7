import { expect, it } from "vitest";
import type { Trace } from "../api/types";
import { outputText, ranFor } from "./highlight";
import { canvas, edge, node } from "./sample";

const trace = (more: Partial<Trace> = {}): Trace =>
  ({
    turns: [],
    steps: [],
    used_tools: [],
    sources: [],
    state: {},
    tokens: {},
    cut: false,
    ...more,
  }) as unknown as Trace;

it("takes the steps that an agentflow tells, and else every node before the one that it feeds", () => {
  const steps = [{ node_id: "start" }, { node_id: "llm" }] as Trace["steps"];
  expect(ranFor(trace({ steps }), canvas([]))).toBe(steps);
  const flow = canvas(
    [
      node("agent_0"),
      node("calculator_0", { category: "Tools" }),
      node("search_0", { category: "Tools" }),
      node("chatOpenAI_0"),
      node("note", { kind: "note" }),
    ],
    [edge("chatOpenAI_0", "agent_0"), edge("calculator_0", "agent_0"), edge("search_0", "agent_0")],
  );
  const used = [{ tool: "calculator", input: "17*3", output: "51", error: "" }] as Trace["used_tools"];
  const ran = ranFor(trace({ used_tools: used }), flow);
  expect(ran.map((one) => one.node_id)).toEqual(["calculator_0", "chatOpenAI_0", "agent_0"]);
  expect(ran[0]).toMatchObject({ input: "17*3", output: "51" });
  expect(ranFor(trace(), flow).map((one) => one.node_id)).toEqual(["chatOpenAI_0", "agent_0"]);
  // A circle ends as well.
  const circle = canvas([node("a"), node("b")], [edge("a", "b"), edge("b", "a")]);
  expect(ranFor(trace(), circle)).toHaveLength(2);
});

it("shows the answer of a step, else its output as JSON", () => {
  expect([outputText({ content: "Hello", model: "m" }), outputText({ a: 1 }), outputText(null)]).toEqual([
    "Hello",
    '{"a":1}',
    "",
  ]);
});
