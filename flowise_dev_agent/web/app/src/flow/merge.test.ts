import { expect, it, test } from "vitest";
import type { FieldChange, Preview } from "../api/types";
import { calm, counts, merged, previewed, unmarked } from "./merge";
import { canvas, change, edge, node } from "./sample";

const named = (id: string) => ({ id, name: id, label: id });

test("a new flow is all added", () => {
  const after = canvas([node("a"), node("b")], [edge("a", "b")]);
  const both = merged(
    change({
      after,
      diff: {
        added: [named("a"), named("b")],
        connected: [{ source: "a", output: "", target: "b", input: "model" }],
      },
    }),
  );
  expect(both.nodes.map(({ mark }) => mark)).toEqual(["added", "added"]);
  expect(both.edges.map(({ mark }) => mark)).toEqual(["added"]);
  expect(counts(both)).toEqual({ added: 3, changed: 0, removed: 0, moved: 0 });
  // Where nothing is old no mark tells anything.
  expect(counts(calm(both))).toEqual({ added: 0, changed: 0, removed: 0, moved: 0 });
  const partly = { ...both, nodes: [...both.nodes, ...unmarked(canvas([node("c")])).nodes] };
  expect(calm(partly)).toBe(partly);
});

test("removed nodes keep their place and the ports that removed connections need", () => {
  const port = { id: "b-model", name: "model", label: "Model" };
  const before = canvas([node("a", { x: 7 }), node("b", { inputs: [port] })], [edge("a", "b")]);
  const after = canvas([node("b")]);
  const both = merged(
    change({
      before,
      after,
      diff: {
        removed: [named("a")],
        changed: [{ ...named("b"), fields: [{ name: "title", before: "x", after: "y" }] }],
        disconnected: [{ source: "a", output: "", target: "b", input: "model" }],
      },
    }),
  );
  const marks = Object.fromEntries(both.nodes.map(({ node, mark }) => [node.id, mark]));
  expect(marks).toEqual({ a: "removed", b: "changed" });
  expect(both.nodes.find(({ node }) => node.id === "a")?.node.x).toBe(7);
  expect(both.nodes.find(({ node }) => node.id === "b")?.node.inputs).toEqual([port]);
  expect(both.nodes.find(({ node }) => node.id === "b")?.fields).toHaveLength(1);
  expect(both.edges.map(({ edge, mark }) => [edge.id, mark])).toEqual([["before-a-b", "removed"]]);
});

test("a connection that was made again is drawn once", () => {
  const flow = canvas([node("a"), node("b")], [edge("a", "b")]);
  const both = merged(change({ before: flow, after: flow }));
  expect(both.edges).toHaveLength(1);
  expect(both.nodes.every(({ mark }) => mark === "same")).toBe(true);
});

test("moved nodes are marked differently from changed ones", () => {
  const flow = canvas([node("a"), node("b")]);
  const fields = [{ name: "x", before: "", after: "1" }];
  const both = merged(
    change({ before: flow, after: flow, diff: { moved: ["a", "b"], changed: [{ ...named("b"), fields }] } }),
  );
  expect(both.nodes.map(({ mark }) => mark)).toEqual(["moved", "changed"]);
});

test("400 nodes are merged", () => {
  const nodes = Array.from({ length: 400 }, (_, number) => node(`n_${number}`));
  const edges = nodes.slice(1).map((one, number) => edge(`n_${number}`, one.id));
  const both = merged(change({ before: canvas(nodes, edges), after: canvas(nodes.slice(1), edges.slice(1)) }));
  expect(both.nodes).toHaveLength(400);
  expect(unmarked(canvas(nodes, edges)).edges).toHaveLength(399);
});

test("a replaced node is drawn above its replacement", () => {
  const both = merged(
    change({
      before: canvas([node("old", { x: 10, y: 500 })]),
      after: canvas([node("new", { x: 10, y: 500 }), node("other", { x: 10, y: 420 })]),
      diff: { removed: [named("old")], added: [named("new")] },
    }),
  );
  const [fresh, other, gone] = both.nodes.map(({ node }) => node.y);
  expect([fresh, other]).toEqual([500, 420]);
  expect(gone).toBeLessThan(420 - 62);
});

it("draws a plan as ghosts with its values, removed nodes apart and expected connections marked", () => {
  const param = (name: string, value: string) => ({ name, label: name, value, cut: false });
  const drawn = (id: string, state: Preview["nodes"][number]["state"], values: FieldChange[] = []) => ({
    node: node(id, { params: [param("prompt", "My own."), ...values.map((one) => param(one.name, one.after))] }),
    state,
    values,
    placed: true,
    purpose: "",
    model: "",
    prompt: "",
    parts: [],
  });
  const preview = {
    source: "plan",
    nodes: [
      drawn("new_0", "new", [{ name: "systemMessage", before: "", after: "Be brief." }]),
      drawn("old_0", "removed"),
      drawn("kept_0", "changed", [{ name: "temperature", before: "0.9", after: "0.1" }]),
    ],
    edges: [{ edge: edge("kept_0", "new_0"), state: "new", expected: true }],
  } as unknown as Preview;
  const { nodes, edges } = previewed(preview);
  expect(nodes.map((one) => [one.mark, one.ghost])).toEqual([
    ["added", true],
    ["removed", false],
    ["changed", false],
  ]);
  // All that the flow has, and what is set now first.
  expect(nodes[0]?.node.params).toEqual([param("systemMessage", "Be brief."), param("prompt", "My own.")]);
  // The removed node does not lie on the one that comes in its place.
  expect(nodes[1]?.node.y).not.toBe(nodes[0]?.node.y);
  expect(nodes[2]?.fields).toHaveLength(1);
  expect(nodes[2]?.before?.params).toMatchObject([{ name: "temperature", value: "0.9" }]);
  expect(edges[0]).toMatchObject({ mark: "added", expected: true });
});
