import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../api/types";
import { answerTo, currentActivity, timelineOf } from "./timeline";

type Data<Type extends SessionEvent["type"]> = Extract<SessionEvent, { type: Type }>["data"];

let seq = 0;
function event<Type extends SessionEvent["type"]>(
  type: Type,
  node: string | null,
  { data, ...more }: { data?: Partial<Data<Type>>; summary?: string; duration_ms?: number } = {},
): SessionEvent {
  seq += 1;
  return {
    seq,
    ts: "2026-01-01T10:00:00Z",
    session_id: "s",
    run_id: null,
    type,
    node,
    phase: node?.startsWith("plan") || node?.startsWith("hitl") ? "plan" : "test",
    status: null,
    duration_ms: null,
    summary: "",
    data: { truncated: [], ...data },
    ...more,
  } as SessionEvent;
}
const textOf = ({ text }: { text: string }) => text;
const start = (node: string) => event("node_start", node);
const end = (node: string, ms: number) => event("node_end", node, { duration_ms: ms });

describe("the story of a session", () => {
  it("groups steps by phase and adds up what they took", () => {
    const { groups, running } = timelineOf([
      start("plan_v2"),
      end("plan_v2", 100),
      start("hitl_plan_v2"),
      end("hitl_plan_v2", 20),
      start("test_v2"),
    ]);
    expect(groups.map((one) => [one.phase, one.steps.length, one.durationMs, one.state])).toEqual([
      ["plan", 2, 120, "done"],
      ["test", 1, 0, "running"],
    ]);
    expect(running?.node).toBe("test_v2");
  });

  it("makes one step of a question and the work after its answer, without the person's time", () => {
    const asked = event("interrupt", "hitl_plan_v2", { data: { interrupt_id: "i1" } });
    const waiting = timelineOf([start("hitl_plan_v2"), asked]);
    expect(waiting.groups[0]?.state).toBe("waiting");
    expect(waiting.running).toBeNull();
    const { groups } = timelineOf([start("hitl_plan_v2"), asked, start("hitl_plan_v2"), end("hitl_plan_v2", 7)]);
    expect(groups[0]?.steps).toHaveLength(1);
    expect(groups[0]?.durationMs).toBe(7);
  });

  it("makes one step of the attempts after an outage, and says once why they failed", () => {
    const away = "Flowise cannot be reached.";
    const fails = (code: string) => [
      start("apply_patch"),
      event("node_error", "apply_patch", { summary: away, data: { code } }),
    ];
    const again = (number: number) =>
      event("retry", "apply_patch", { summary: `Attempt ${number} of 3 in 1 s: ${away}` });
    const tried = [...fails("away"), again(2), ...fails("away"), again(3)];
    const told = (events: SessionEvent[]) => timelineOf(events).groups[0]?.steps.map((one) => one.notes.map(textOf));
    expect(told(tried)).toEqual([[`Attempt 3 of 3 in 1 s: ${away}`]]);
    const ended = event("error", "apply_patch", { summary: away, data: { code: "away" } });
    expect(told([...tried, ...fails("away"), ended])).toEqual([["Attempt 3 of 3 in 1 s", away]]);
  });

  it("tells how far a step is with what it writes", () => {
    const wrote = (summary: string) => event("write", "apply_patch", { summary });
    const events = [start("apply_patch"), wrote("Document store 'HR': created")];
    expect(currentActivity(timelineOf(events))).toBe("Writing to Flowise (Document store 'HR': created)");
    const read = wrote("Document store 'HR': 1 of 3 files read, 4 pieces");
    expect(currentActivity(timelineOf([...events, read]))).toContain("1 of 3 files read");
  });

  it("shows that a step was interrupted and restarted", () => {
    const { groups } = timelineOf([start("plan_v2"), start("plan_v2"), end("plan_v2", 5)]);
    expect(groups[0]?.steps.map((one) => one.state)).toEqual(["restarted", "done"]);
  });

  it("keeps the reason, the cost and the options of a decision with the step", () => {
    const decision = event("decision", "plan_v2", {
      summary: "not read",
      data: {
        why: "the plan needs approval",
        candidates: [
          { to: "end", why: "it is answered", fits: false },
          { to: "hitl_plan_v2", why: "the plan needs approval", fits: true },
        ],
      },
    });
    const cost = event("cost", "plan_v2", { data: { input_tokens: 900, output_tokens: 100, usd: 0.01 } });
    const { groups } = timelineOf([start("plan_v2"), cost, decision, end("plan_v2", 5)]);
    const step = groups[0]?.steps[0];
    expect(step?.tokens).toEqual({ input: 900, output: 100, usd: 0.01 });
    expect(step?.notes[0]).toMatchObject({ text: "the plan needs approval" });
    expect(step?.notes[0]?.candidates[0]).toMatchObject({ to: "end", fits: false });
  });

  it("shows the tests of the newest run and marks those from before the change", () => {
    const test = (data: Partial<Data<"test">>) => event("test", "test_v2", { data: { passed: true, ...data } });
    const { tests } = timelineOf([
      start("test_v2"),
      test({ question: "Hello", before: true }),
      end("test_v2", 9),
      start("test_v2"),
      test({ question: "Hello", trial: 2, answer: "Hi", duration_ms: 12, category: null }),
    ]);
    expect(tests).toMatchObject([{ question: "Hello", answer: "Hi", passed: true, duration_ms: 12, trial: 2 }]);
  });

  it("takes options from decisions only, since other events have candidates of their own", () => {
    const found = event("artifact", "resolve_target", { summary: "2 flows", data: { candidates: ["f1", "f2"] } });
    const { groups } = timelineOf([start("resolve_target"), found]);
    expect(groups[0]?.steps[0]?.notes[0]).toMatchObject({ text: "2 flows", candidates: [] });
  });

  it("shows a failure once and ends with the session", () => {
    const problem = { summary: "Flowise does not respond.", data: { code: "flowise_unavailable" } };
    const { groups } = timelineOf([
      start("test_v2"),
      event("node_error", "test_v2", problem),
      event("error", "test_v2", problem),
    ]);
    expect(groups[0]?.state).toBe("failed");
    expect(groups[0]?.steps[0]?.notes).toHaveLength(1);
    expect(timelineOf([start("test_v2"), event("done", null)]).groups[0]?.state).toBe("done");
  });
});

it("shows what happens now, and which attempt it is", () => {
  expect(currentActivity(timelineOf([]))).toBe("Waiting for its turn");
  expect(currentActivity(timelineOf([start("plan_v2")]))).toBe("Writing the plan");
  const retry = event("retry", "plan_v2", { summary: "Attempt 2 of 6 in 3 s: it was busy" });
  expect(currentActivity(timelineOf([start("plan_v2"), retry]))).toContain("Attempt 2 of 6");
  expect(currentActivity(timelineOf([start("a_new_node")]))).toBe("a new node");
});

it("finds how a question was answered", () => {
  const asked = event("interrupt", "hitl_plan_v2", { data: { interrupt_id: "i1" } });
  const decided = event("decision", "hitl_plan_v2", { data: { why: "the plan was approved" } });
  expect(answerTo([asked], "i1")).toBeNull();
  expect(answerTo([asked, start("hitl_plan_v2"), decided], "i1")).toBe("the plan was approved");
  expect(answerTo([decided], "other")).toBeNull();
});
