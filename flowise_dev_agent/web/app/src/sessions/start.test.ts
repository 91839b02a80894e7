import { expect, it } from "vitest";
import { EMPTY, EXAMPLES, requestOf } from "./start";

it("sends only the requirement by default", () => {
  expect(requestOf({ ...EMPTY, requirement: "  a bot " })).toEqual({ requirement: "a bot" });
});

it("sends every option that is chosen", () => {
  expect(
    requestOf({
      requirement: "warmer",
      operation: "update",
      target: { id: "f1", name: "Support" },
      instance: "staging",
      writeMode: "direct",
      reviewPatch: true,
      skipClarification: true,
      trials: 3,
      tokens: "5000",
      usd: "0.5",
      files: [{ id: "a1", name: "hours.md", kind: "markdown" }],
    }),
  ).toEqual({
    requirement: "warmer",
    operation: "update",
    target: "f1",
    flowise_instance_id: "staging",
    write_mode: "direct",
    review_patch: true,
    skip_clarification: true,
    test_trials: 3,
    attachments: ["a1"],
    budget: { tokens: 5000, usd: 0.5 },
  });
});

it("leaves out a limit that is not a positive number", () => {
  expect(requestOf({ ...EMPTY, requirement: "x", tokens: "0", usd: "abc" })).toEqual({ requirement: "x" });
});

it("has examples to start with", () => {
  for (const { requirement } of EXAMPLES) expect(requirement.length).toBeGreaterThan(20);
});
