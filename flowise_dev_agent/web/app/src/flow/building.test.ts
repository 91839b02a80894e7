import { expect, it } from "vitest";
import { leadsBack, pasted, placed } from "./building";
import { edge, node } from "./sample";

it("lets no line between steps make a circle", () => {
  const [first, second, third] = ["a_0", "b_0", "c_0"].map((id) => node(id, { kind: "agent" }));
  if (!first || !second || !third) throw new Error("three steps");
  const edges = [edge("a_0", "b_0"), edge("b_0", "c_0")];
  expect(leadsBack({ edges }, third, first)).toBe(true);
  expect(leadsBack({ edges }, first, third)).toBe(false);
  // Also in a flow that has a circle already.
  expect(leadsBack({ edges: [...edges, edge("c_0", "b_0")] }, second, first)).toBe(true);
  expect(leadsBack({ edges }, node("x_0"), node("y_0"))).toBe(false);
});

it("copies several nodes with the lines between them, and never onto ids that are taken", () => {
  const some = ["a_0", "b_0"].map((id) => ({ ...node(id, { x: 10, y: 20 }), params: { deny: "bet" } }));
  const { ops, ids } = pasted({ nodes: some, lines: [edge("a_0", "b_0"), edge("b_0", "elsewhere")] }, ["a_0", "b_0"]);
  expect(ids).toEqual(["a_1", "b_1"]);
  expect(ops.map((op) => op.op_type)).toEqual(["AddNode", "SetPosition", "AddNode", "SetPosition", "Connect"]);
  expect(ops.at(-1)).toMatchObject({ source_node_id: "a_1", target_node_id: "b_1", target_anchor: "model" });
  expect(ops[1]).toMatchObject({ x: 50, y: 60 });
});

it("puts a step in between that leads on by its first branch, however many it has", () => {
  const line = { ...edge("a_0", "b_0"), output: "1", input: "" };
  const ops = placed({ kind: "line", edge: line }, "humanInputAgentflow", "h_0", []);
  expect(ops.slice(1)).toMatchObject([
    { op_type: "Disconnect", source_node_id: "a_0", source_anchor: "1" },
    { op_type: "Connect", source_node_id: "a_0", source_anchor: "1", target_node_id: "h_0" },
    { op_type: "Connect", source_node_id: "h_0", source_anchor: "0", target_node_id: "b_0" },
  ]);
});
