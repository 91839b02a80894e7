import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, expect, it, vi } from "vitest";
import type { NumberedVersion } from "../api/types";
import { TakeBack } from "./HistoryPage";

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

it("deletes the flow that a session made after a question, and undeploys it at once", async () => {
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    sent.push(pathname + search);
    return Response.json({ created: search.slice("?created=".length) });
  });
  const shown = () =>
    render(
      <QueryClientProvider client={new QueryClient()}>
        <TakeBack version={{ session_id: "s1", flow_name: "Greeter" } as NumberedVersion} />
      </QueryClientProvider>,
    );
  shown();
  await userEvent.click(screen.getByRole("button", { name: "Delete the flow" }));
  expect(sent).toEqual([]);
  const dialog = screen.getByRole("dialog", { name: "Delete “Greeter” in Flowise?" });
  await userEvent.click(dialog.querySelector("button.danger") as HTMLElement);
  expect(await screen.findByText("The flow is deleted.")).toBeTruthy();
  cleanup();
  shown();
  await userEvent.click(screen.getByRole("button", { name: "Undeploy" }));
  expect(await screen.findByText("The flow is undeployed.")).toBeTruthy();
  expect(sent).toEqual(["/sessions/s1/rollback?created=delete", "/sessions/s1/rollback?created=undeploy"]);
});
