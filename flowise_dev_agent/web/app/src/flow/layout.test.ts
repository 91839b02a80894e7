import { expect, test } from "vitest";
import {
  backTo,
  bounds,
  boxesOf,
  branchOf,
  firstOf,
  HEADER,
  insideOf,
  inWords,
  MAX_PARAMS,
  NODE_WIDTH,
  nextTo,
  portTop,
  sizeOf,
  tone,
} from "./layout";
import { opInWords } from "./ops";
import { canvas, edge, node } from "./sample";

const port = (id: string) => ({ id, name: id, label: id });
const params = (many: number) =>
  Array.from({ length: many }, (_, number) => ({ name: `p${number}`, label: `P${number}`, value: "1", cut: false }));

test("a box has room for every row, and ports are at their rows", () => {
  const few = node("a", { inputs: [port("i1"), port("i2")], outputs: [port("o")], params: params(1) });
  const many = node("b", { ...few, params: params(50) });
  expect(sizeOf(few).width).toBe(NODE_WIDTH);
  expect(sizeOf(many).height - sizeOf(few).height).toBe((MAX_PARAMS - 1 + 1) * 24);
  for (const one of [few, many]) {
    const tops = [portTop(one, "inputs", 0), portTop(one, "inputs", 1), portTop(one, "outputs", 0)];
    expect(tops).toEqual([...tops].sort((left, right) => left - right));
    expect(tops[0]).toBeGreaterThan(HEADER);
    expect(tops[2]).toBeLessThan(sizeOf(one).height);
  }
});

test("a node inside an iteration is positioned from its corner; circular parents are safe", () => {
  const inside = node("in", { parent: "loop", x: 10, y: 20 });
  const loop = node("loop", { kind: "iteration", x: 100, y: 200, width: 400, height: 300 });
  const boxes = boxesOf([inside, loop]);
  expect(boxes.get("in")).toMatchObject({ x: 110, y: 220 });
  expect(boxes.get("loop")).toMatchObject({ width: 400, height: 300 });
  expect(boxesOf([node("a", { parent: "b" }), node("b", { parent: "a" })]).size).toBe(2);
});

test("bounds contain all boxes; without any they are a unit box", () => {
  const boxes = boxesOf([node("a", { x: -50 }), node("b", { x: 500, y: 100 })]);
  const all = bounds(boxes.values());
  expect([all.x, all.x + all.width]).toEqual([-50, 500 + NODE_WIDTH]);
  expect(bounds([])).toEqual({ x: 0, y: 0, width: 1, height: 1 });
});

test("every category has a tone, also an unknown one", () => {
  expect(tone(node("a", { category: "Chat Models" }))).toBe("model");
  expect(tone(node("a", { category: "Vector Stores" }))).toBe("data");
  expect(tone(node("a", { category: "Brand New" }))).toBe("plain");
  expect(tone(node("a", { kind: "note" }))).toBe("note");
});

test("the flow as text leaves out notes", () => {
  expect(inWords(canvas([node("a"), node("n", { kind: "note" }), node("b")], [edge("a", "b")]))).toBe(
    "2 nodes, 1 connection: a, b",
  );
});

test("every op is a sentence, also one without words of its own", () => {
  expect(opInWords({ op_type: "SetParam", node_id: "a", param_name: "temperature", value: 0.2 })).toBe(
    "Set temperature of a to 0.2",
  );
  expect(opInWords({ op_type: "Connect", source_node_id: "a", target_node_id: "b", target_anchor: "model" })).toBe(
    "Connect a to b.model",
  );
  expect(opInWords({ op_type: "SetParam", node_id: "a", param_name: "p", value: "x".repeat(500) }).length).toBeLessThan(
    120,
  );
  expect(opInWords({ op_type: "SetPosition", node_id: "a", x: 1, y: 2 })).toBe("SetPosition a");
});

test("finds the next node by arrow keys, and the one at which a flow begins", () => {
  const box = (x: number, y: number) => ({ x, y, width: 100, height: 50 });
  const boxes = new Map([
    ["model", box(0, 0)],
    ["memory", box(0, 100)],
    ["chain", box(300, 40)],
    ["far", box(900, 60)],
  ]);
  expect(firstOf(boxes)).toBe("model");
  const ways = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Enter"];
  expect(ways.map((key) => nextTo(boxes, "model", key))).toEqual(["chain", null, "memory", null, null]);
  expect(ways.map((key) => nextTo(boxes, "chain", key))).toEqual(["far", "model", "memory", "model", null]);
  expect(nextTo(boxes, "gone", "ArrowUp")).toBeNull();
});

const field = (name: string, value: unknown) => ({
  name,
  label: name,
  value: typeof value === "string" ? value : JSON.stringify(value),
  cut: false,
});

test("a step shows its model, its tools and its memory, and a hostile value none", () => {
  const step = node("agent_0", {
    kind: "agent",
    params: [
      field("agentModel", "chatOpenAI"),
      field("agentModelConfig", { modelName: "gpt-4o-mini" }),
      field("agentTools", [{ agentSelectedTool: "calculator" }, { agentSelectedTool: "gmail" }, {}]),
      field("agentEnableMemory", "true"),
    ],
  });
  expect(insideOf(step)).toEqual({
    model: { type: "chatOpenAI", name: "gpt-4o-mini" },
    tools: ["calculator", "gmail"],
    memory: true,
  });
  const odd = node("agent_0", { kind: "agent", params: [field("agentTools", "[not JSON")] });
  expect(insideOf(odd)).toEqual({ model: null, tools: [], memory: false });
});

test("branches have the names of what they are for, and a way back leads to its step", () => {
  const ways = ["0", "1"].map((name) => ({ id: name, name, label: name }));
  const sorts = node("sort_0", {
    kind: "agent",
    outputs: ways,
    params: [field("conditionAgentScenarios", [{ scenario: "Refund" }, { scenario: "" }])],
  });
  expect([branchOf(sorts, 0), branchOf(sorts, 1)]).toEqual(["Refund", "1"]);
  const conditions = [{ value1: "<p>{{ next }}</p>", operation: "equal", value2: "FINISH" }];
  const decides = node("if_0", { kind: "agent", outputs: ways, params: [field("conditions", conditions)] });
  expect([branchOf(decides, 0), branchOf(decides, 1)]).toEqual(["next equal FINISH", "else"]);
  // Each name has a row of the box, and its point beside it.
  const plain = node("say_0", { kind: "agent", outputs: ways.slice(1) });
  expect(sizeOf(decides).height - sizeOf(plain).height).toBe(2 * 24);
  const [first, second] = [0, 1].map((index) => portTop(decides, "outputs", index)) as [number, number];
  expect(second - first).toBe(24);
  expect(first).toBeGreaterThan(sizeOf(plain).height - 24);
  const loop = node("loop_0", { kind: "agent", params: [field("loopBackToNode", "sort_0-Sorts-it")] });
  expect(backTo(loop, [decides, sorts])).toBe(sorts);
  expect(backTo(sorts, [loop])).toBeUndefined();
});
