import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it } from "vitest";
import { partsOf, TextDiff } from "./TextDiff";

afterEach(cleanup);

const LINES = Array.from({ length: 30 }, (_, number) => `Line ${number} stays.`);

it("marks the words that differ and folds the lines that do not", async () => {
  const before = [...LINES, "Be kind.", ...LINES].join("\n");
  const { container } = render(<TextDiff before={before} after={before.replace("kind", "brief and true")} />);
  expect(container.querySelector("del")?.textContent).toBe("Before kind");
  expect(container.querySelector("ins")?.textContent).toBe("After brief and true");
  expect(container.textContent).not.toContain("Line 3 stays.");
  await userEvent.click(screen.getAllByRole("button", { name: "29 unchanged lines" })[0] as HTMLElement);
  expect(container.textContent).toContain("Line 3 stays.");
  expect(screen.queryByRole("button")).toBeNull();
});

it("shows two texts whole where comparing them takes too long", () => {
  const [one, other] = ["a", "b"].map((letter) =>
    Array.from({ length: 30_000 }, (_, at) => `${letter}${at}`).join(" "),
  );
  const begin = performance.now();
  expect(partsOf(one ?? "", other ?? "").map((part) => part.kind)).toEqual(["removed", "added"]);
  expect(performance.now() - begin).toBeLessThan(3_000);
});
