import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import type { Verdict } from "../api/types";
import { VerdictView } from "./VerdictView";

afterEach(cleanup);

it("says of a criterion that was shown with stand-ins that it was simulated", () => {
  const given = { judged_by: "model", evidence: [], reason: "", state: "shown", texts: {} };
  const criteria = [
    { ...given, id: "c1", text: "It places the order.", level: "simulated" },
    { ...given, id: "c2", text: "It greets.", level: "verified" },
  ];
  render(<VerdictView verdict={{ headline: "works", done: true, parts: [], criteria } as unknown as Verdict} />);
  const [placed, greets] = screen.getAllByRole("listitem").map((one) => one.textContent);
  expect(placed).toContain("Simulated");
  expect(greets).not.toContain("Simulated");
});

it("folds what was checked into one line, and opens it where something is wrong", () => {
  const given = { judged_by: "code", evidence: [], reason: "", level: null, texts: {} };
  const verdict = (state: string) =>
    ({
      headline: state === "failed" ? "fails" : "runs",
      done: true,
      parts: [],
      criteria: [{ ...given, id: "c1", text: "It greets.", state }],
    }) as unknown as Verdict;
  const { rerender } = render(<VerdictView verdict={verdict("not_shown")} />);
  expect(screen.getByText("It answers. No model judged the answers: please read them.")).toBeTruthy();
  expect(screen.getByRole("group").hasAttribute("open")).toBe(false);
  rerender(<VerdictView key="failed" verdict={verdict("failed")} />);
  expect(screen.getByRole("group").hasAttribute("open")).toBe(true);
});
