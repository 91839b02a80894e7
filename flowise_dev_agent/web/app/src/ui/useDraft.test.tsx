import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { forgetDrafts, useDraft } from "./useDraft";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
});

const draft = (key: string) => renderHook(({ at }) => useDraft(at, ""), { initialProps: { at: key } });

it("keeps what is typed for the next time, for each question apart", () => {
  const { result, rerender } = draft("feedback:i1");
  act(() => result.current[1]("half a thought"));
  expect(draft("feedback:i1").result.current[0]).toBe("half a thought");
  rerender({ at: "feedback:i2" });
  expect(result.current[0]).toBe("");
  rerender({ at: "feedback:i1" });
  expect(result.current[0]).toBe("half a thought");
  forgetDrafts("i1");
  expect(draft("feedback:i1").result.current[0]).toBe("");
});

it("does not write what may be a key to the browser's storage, and node names are none", () => {
  const { result } = draft("a");
  act(() => result.current[1]("my key is sk-proj-Zx9Kq2LmP4vT7wRb1NcY5sHd8JfGaQ3e"));
  expect(result.current[0]).toContain("sk-proj");
  expect(sessionStorage.length).toBe(0);
  for (const fine of ["conversationalRetrievalQAChain_0", "flow 265dcbf7-07c1-4b31-b27d-b356e60a75cd"]) {
    act(() => result.current[1](fine));
    expect(draft("a").result.current[0]).toBe(fine);
  }
});

it("ignores what another version of the page has kept", () => {
  sessionStorage.setItem("flowise-dev-agent-draft:b", "{no json");
  expect(draft("b").result.current[0]).toBe("");
});
