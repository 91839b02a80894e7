import { expect, it } from "vitest";
import { arranged } from "./arrange";
import { boxesOf } from "./layout";
import { edge, node } from "./sample";

it("lays nodes out from left to right without overlaps, notes above and inner nodes in their place", () => {
  const nodes = [
    node("c_0"),
    node("a_0"),
    node("b_0"),
    node("note_0", { kind: "note", width: 200, height: 80 }),
    node("box_0", { kind: "iteration", width: 400, height: 300 }),
    node("inner_0", { parent: "box_0", x: 20, y: 30 }),
  ];
  const edges = [edge("a_0", "c_0"), edge("b_0", "c_0"), edge("c_0", "inner_0")];
  const placed = new Map(arranged(nodes, edges).map((one) => [one.id, one]));
  expect(placed.get("a_0")?.x).toBe(placed.get("b_0")?.x);
  expect(placed.get("c_0")?.x).toBeGreaterThan(placed.get("a_0")?.x ?? 0);
  expect(placed.get("box_0")?.x).toBeGreaterThan(placed.get("c_0")?.x ?? 0);
  expect(placed.get("inner_0")).toMatchObject({ x: 20, y: 30 });
  const outer = [...boxesOf([...placed.values()].filter((one) => !one.parent)).values()];
  for (const [index, one] of outer.entries())
    for (const other of outer.slice(index + 1)) {
      const apart = one.x + one.width <= other.x || other.x + other.width <= one.x;
      expect(apart || one.y + one.height <= other.y || other.y + other.height <= one.y).toBe(true);
    }
});

it("goes on in a second row behind the middle of a long line", () => {
  const nodes = Array.from({ length: 12 }, (_, index) => node(`n_${index}`));
  const placed = arranged(
    nodes,
    nodes.slice(1).map((one, index) => edge(`n_${index}`, one.id)),
  );
  expect(new Set(placed.map((one) => one.y)).size).toBe(2);
  expect(placed[6]?.x).toBe(placed[0]?.x);
});
