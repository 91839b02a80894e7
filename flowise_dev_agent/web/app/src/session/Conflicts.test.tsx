import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, expect, it, vi } from "vitest";
import type { SessionView, VersionView } from "../api/types";
import { Conflicts } from "./Conflicts";

beforeAll(() => {
  // jsdom shows no dialogs.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const version = (label: string, sha256: string, chatflow_id = "f1") => ({ label, sha256, chatflow_id }) as VersionView;
const VERSIONS = [
  version("v1.0", "before"),
  version("v2.0", "ours"),
  version("v3.0", "theirs"),
  version("v9.0", "ours", "draft"),
];

/** Render the notice; gives what was sent by POST. */
function show(change: Partial<SessionView> = {}, versions = VERSIONS) {
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    if (request.method === "POST") sent.push(pathname + search);
    return Response.json(request.method === "POST" ? { label: "v2.0", already_there: false } : { versions });
  });
  const session = {
    thread_id: "s1",
    chatflow_id: "f1",
    status: "completed",
    interrupt: null,
    last_event_seq: 9,
    result: { conflicts: [{ chatflow_id: "f1", ours: "ours", theirs: "theirs" }] },
    ...change,
  } as unknown as SessionView;
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <Conflicts session={session} />
    </QueryClientProvider>,
  );
  return sent;
}

it("P90: says whose text was replaced and restores either version after a confirmation", async () => {
  const sent = show();
  expect(screen.getByText(/Their text replaced the session’s text/)).toBeTruthy();
  await userEvent.click(await screen.findByRole("button", { name: "Restore the session’s text" }));
  expect(sent).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Write v2.0 to Flowise" }));
  expect(await screen.findByText(/is as v2.0 again/)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Restore their text" }));
  await userEvent.click(screen.getByRole("button", { name: "Write v3.0 to Flowise" }));
  expect(sent).toEqual(["/sessions/s1/rollback?version=v2.0", "/sessions/s1/rollback?version=v3.0"]);
  expect(screen.getByRole("link", { name: "Compare the versions" }).getAttribute("href")).toContain("/history/f1");
});

it("restores nothing while the session works or asks", async () => {
  show({ status: "pending_interrupt", interrupt: { id: "i1" } as SessionView["interrupt"] });
  expect(await screen.findByText(/when the session has ended/)).toBeTruthy();
  expect(screen.queryByRole("button", { name: /Restore/ })).toBeNull();
});

it("says that a version was removed, and shows nothing without a conflict", async () => {
  show({}, VERSIONS.slice(0, 2));
  expect(await screen.findByText("A version of it is no longer stored.")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Restore their text" })).toBeNull();
  cleanup();
  show({ result: { conflicts: [] } as unknown as SessionView["result"] });
  expect(screen.queryByRole("region")).toBeNull();
});
