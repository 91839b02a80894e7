import { act, cleanup, render, screen, waitFor } from "@testing-library/react";
import { type ReactFlowInstance, useReactFlow } from "@xyflow/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { CanvasView } from "../api/types";
import { FlowCanvas } from "./FlowCanvas";
import { canvas, edge, node } from "./sample";

const MANY = 60;
/** Ids of the nodes whose boxes were drawn, as often as they were. */
let drawn: string[] = [];
let flow: ReactFlowInstance;

beforeEach(() => {
  const Watch = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  vi.stubGlobal("ResizeObserver", Watch);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** A node that notes when a box reads its category. */
function watched(id: string, index: number) {
  const made = node(id, { x: index * 300, y: 0 });
  return Object.defineProperty(made, "category", {
    get: () => {
      drawn.push(id);
      return "Chains";
    },
  });
}

function Pilot() {
  flow = useReactFlow();
  return null;
}

function Shown({ view }: { view: CanvasView }) {
  const [chosen, choose] = useState<string | null>(null);
  return (
    <>
      <button type="button" onClick={() => choose("n7")}>
        choose
      </button>
      <FlowCanvas flow={view} label="flow" chosen={chosen} onChoose={choose}>
        <Pilot />
      </FlowCanvas>
    </>
  );
}

it("draws no node again that did not change: not by panning, and of a choice only the chosen one", async () => {
  const ids = Array.from({ length: MANY }, (_, index) => `n${index}`);
  const edges = ids.slice(1).map((id, index) => edge(ids[index] ?? "", id));
  const view = canvas(ids.map(watched), edges);
  const { container } = render(<Shown view={view} />);
  await waitFor(() => expect(container.querySelectorAll(".react-flow__node")).toHaveLength(MANY));
  expect(container.querySelectorAll(".edge")).toHaveLength(MANY - 1);
  expect(new Set(drawn).size).toBe(MANY);

  const { x, y, zoom } = flow.getViewport();
  drawn = [];
  for (const step of [1, 2, 3]) await act(async () => void flow.setViewport({ x: x + step, y: y + step, zoom }));
  expect(flow.getViewport().x).toBe(x + 3);
  expect(drawn).toEqual([]);

  await act(async () => screen.getByText("choose").click());
  expect(container.querySelector(".chosen")).not.toBeNull();
  expect(new Set(drawn)).toEqual(new Set(["n7"]));
});

it("draws all nodes as large letters from far away, also those out of sight, and their settings only near by", async () => {
  const view = canvas(
    ["one", "two"].map((id) => node(id, { label: "Buffer Memory" })),
    [],
  );
  const { container } = render(<Shown view={view} />);
  const texts = (kind: string) => [...container.querySelectorAll(kind)].map((one) => one.textContent?.trim());
  await waitFor(() => expect(texts(".fnode")).toHaveLength(2));
  // The flow is fitted in a frame of its own, which may come between.
  const moved = (x: number, zoom: number, look: () => void) =>
    waitFor(async () => {
      await act(async () => void flow.setViewport({ x, y: 0, zoom }));
      look();
    });

  await moved(-100_000, 0.1, () => expect(texts(".fnode.tiny")).toEqual(["BM", "BM"]));
  await moved(-100_000, 0.2, () => expect(texts(".far .fnode-name")).toEqual(["Buffer Memory", "Buffer Memory"]));
  await moved(0, 1, () => expect(container.querySelector(".far, .tiny")).toBeNull());
  expect(container.querySelectorAll(".fnode header")).toHaveLength(2);
});
