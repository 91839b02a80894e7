import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { Thumbs } from "./Thumbs";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show() {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push([new URL(request.url).pathname, await request.json()]);
    return Response.json({ question: "Hours?", passed: true });
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Thumbs session="3a01" number={2} question="Hours?" mark={null} />
    </QueryClientProvider>,
  );
  return sent;
}

const path = expect.stringMatching(/sessions\/3a01\/tests\/2\/verdict$/);

it("takes a thumb up at once", async () => {
  const sent = show();
  await userEvent.click(screen.getByRole("button", { name: "Good answer: Hours?" }));
  expect(sent).toEqual([[path, { good: true, contains: [], excludes: [] }]]);
});

it("asks after a thumb down what the answer should have said", async () => {
  const sent = show();
  await userEvent.click(screen.getByRole("button", { name: "Wrong answer: Hours?" }));
  expect(sent).toEqual([]);
  await userEvent.type(screen.getByRole("textbox"), "from nine to five{Enter}");
  expect(sent).toEqual([[path, { good: false, contains: ["from nine to five"], excludes: [] }]]);
});
