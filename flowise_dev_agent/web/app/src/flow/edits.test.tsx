import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { fits, placed } from "./building";
import { type Edit, edited, freeId, useEdits } from "./edits";
import { unmarked } from "./merge";
import { edge, node } from "./sample";

afterEach(() => {
  cleanup();
  localStorage.clear();
});

const started = () => renderHook(() => useEdits("flow:x", true)).result;
const added = (node_id: string): Edit => ({ op_type: "AddNode", node_name: "llm", node_id });
const line = (op_type: "Connect" | "Disconnect", source: string, target: string): Edit => ({
  op_type,
  source_node_id: source,
  target_node_id: target,
  target_anchor: "",
});

it("keeps one list: what says all is said once, a line that is cut again was never there, all can be undone", () => {
  const draft = started();
  act(() => draft.current.add(added("a_0"), line("Connect", "a_0", "b_0")));
  act(() => draft.current.set("b_0", "heat", 0.1));
  act(() => draft.current.set("b_0", "heat", 0.2));
  expect(draft.current.edits.map((one) => one.op_type)).toEqual(["AddNode", "Connect", "SetParam"]);
  expect(draft.current.edits[2]?.value).toBe(0.2);
  act(() => draft.current.add(line("Disconnect", "a_0", "b_0")));
  expect(draft.current.edits.map((one) => one.op_type)).toEqual(["AddNode", "SetParam"]);
  act(() => draft.current.undo?.());
  act(() => draft.current.undo?.());
  expect(draft.current.edits[2]?.value).toBe(0.1);
  act(() => draft.current.redo?.());
  expect(draft.current.edits[2]?.value).toBe(0.2);
});

it("takes a change out with what needs it", () => {
  const draft = started();
  act(() =>
    draft.current.add(added("a_0"), line("Connect", "a_0", "b_0"), { op_type: "SetLabel", node_id: "b_0", label: "B" }),
  );
  act(() => draft.current.takeOut(draft.current.edits[0] as Edit));
  expect(draft.current.edits.map((one) => one.op_type)).toEqual(["SetLabel"]);
  // A node that was added is not removed: it is not added.
  act(() => draft.current.add(added("c_0")));
  act(() => draft.current.toggleRemoval("c_0"));
  act(() => draft.current.toggleRemoval("b_0"));
  expect(draft.current.edits).toEqual([{ op_type: "RemoveNode", node_id: "b_0" }]);
});

it("is kept over a reload, and told to another tab", () => {
  const [one, other] = [started(), started()];
  act(() => one.current.add(added("a_0")));
  act(() => one.current.rebase("0".repeat(64)));
  const [key = ""] = Object.keys(localStorage);
  act(() => void window.dispatchEvent(new StorageEvent("storage", { key })));
  expect(other.current.edits).toEqual([added("a_0")]);
  expect(started().current.edits).toEqual([added("a_0")]);
});

it("draws at once what needs no service", () => {
  const flow = unmarked({ kind: "", nodes: [node("a_0"), node("b_0")], edges: [], cut: false });
  const drawn = edited(flow, [
    { op_type: "SetPosition", node_id: "a_0", x: 7, y: 9 },
    { op_type: "SetLabel", node_id: "a_0", label: "First" },
    { op_type: "RemoveNode", node_id: "b_0" },
  ]);
  expect(drawn.nodes[0]?.node).toMatchObject({ x: 7, y: 9, label: "First" });
  expect(drawn.nodes[1]?.mark).toBe("removed");
});

it("knows what fits: classes in a chatflow, any later step in a flow of steps", () => {
  const port = (id: string, name = "") => ({ id, name, label: name });
  const model = node("m_0", { outputs: [port("m_0-output-m-ChatOpenAI|BaseChatModel")] });
  const chain = node("c_0", { inputs: [port("c_0-input-model-BaseChatModel | BaseLanguageModel", "model")] });
  const memory = node("y_0", { outputs: [port("y_0-output-y-BaseMemory")] });
  const at = chain.inputs[0] as never;
  expect(fits(model, model.outputs[0] as never, chain, at)).toBe(true);
  expect(fits(memory, memory.outputs[0] as never, chain, at)).toBe(false);
  const step = (id: string, name = id) =>
    node(id, { kind: "agent", name, inputs: [port(id)], outputs: [port(`${id}-out`)] });
  const [start, next] = [step("s_0", "startAgentflow"), step("n_0")];
  const ends = (one: typeof start) => [one.outputs[0], one.inputs[0]] as never[];
  expect(fits(start, ends(start)[0] as never, next, ends(next)[1] as never)).toBe(true);
  expect(fits(next, ends(next)[0] as never, start, ends(start)[1] as never)).toBe(false);
  expect(fits(next, ends(next)[0] as never, next, ends(next)[1] as never)).toBe(false);
});

it("puts a step on a line, inside of what the line is in", () => {
  const nodes = [node("a_0", { kind: "agent", parent: "loop_0" }), node("b_0", { kind: "agent", parent: "loop_0" })];
  const ops = placed({ kind: "line", edge: edge("a_0", "b_0") }, "llm", freeId("llm", ["llm_0"]), nodes);
  expect(ops.map((one) => one.op_type)).toEqual(["AddNode", "SetParent", "Disconnect", "Connect", "Connect"]);
  expect(ops[0]?.node_id).toBe("llm_1");
});
