import { expect, it } from "vitest";
import { outlineOf } from "./outline";
import { edge, node } from "./sample";

const told = (...given: Parameters<typeof outlineOf>) =>
  outlineOf(...given).map((row) => `${row.number} ${row.node.id}${row.branch && ` (${row.branch})`}`);

it("tells steps in the order in which they run, branches by letters, and each of them once", () => {
  const ways = ["yes", "no"].map((name) => ({ id: `ask_0-${name}`, name, label: name }));
  const steps = ["start_0", "ask_0", "pay_0", "tell_0", "refuse_0", "lost_0"].map((id) =>
    node(id, { kind: "agent", outputs: id === "ask_0" ? ways : [] }),
  );
  const way = (source: string, target: string, name: string) => ({
    ...edge(source, target),
    source_handle: `ask_0-${name}`,
  });
  const edges = [
    edge("start_0", "ask_0"),
    way("ask_0", "pay_0", "yes"),
    way("ask_0", "refuse_0", "no"),
    edge("pay_0", "tell_0"),
    edge("tell_0", "ask_0"),
  ];
  expect(told(steps, edges)).toEqual([
    "1 start_0",
    "2 ask_0",
    "2a pay_0 (yes)",
    "2a.2 tell_0",
    "2b refuse_0 (no)",
    "2.1 lost_0",
  ]);
});

it("tells the end of a chatflow first, then what feeds it, without notes", () => {
  const nodes = [node("model_0"), node("note_0", { kind: "note" }), node("chain_0"), node("cache_0")];
  expect(told(nodes, [edge("model_0", "chain_0"), edge("cache_0", "model_0")])).toEqual([
    "1 chain_0",
    "1.1 model_0",
    "1.1.1 cache_0",
  ]);
});
