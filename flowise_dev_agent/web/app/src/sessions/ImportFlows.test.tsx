import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { ImportFlows } from "./ImportFlows";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const named = (name: string) => ({ request: { name, type: "CHATFLOW", flow_data: "{}" }, left_out: ["deployed"] });

/** The section over a service whose second flow is not valid; gives the imports that were sent. */
function show(scopes: string[]) {
  const sent: { name: string; dry_run: boolean }[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/flows/import/read")
      return Response.json({ flows: [named("Good"), named("Bad")], others: { DocumentStore: 2 } });
    if (pathname !== "/flows/import") return Response.json({ name: "key", scopes });
    const body = await request.json();
    sent.push(body);
    return Response.json({
      status: body.dry_run ? "checked" : "completed",
      valid: body.name === "Good",
      chatflow_id: "f1",
      instance: "default",
      credentials: [{ type: "openAIApi", target_id: "c", target_name: "main", nodes: ["OpenAI"], by: "type" }],
      references: [{ kind: "custom tool", name: "weather", target_id: "", created: true }],
      findings: [],
    });
  });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <ImportFlows instance="" />
    </QueryClientProvider>,
  );
  return sent;
}

it("checks the flows of a dropped file, shows what each needs, and writes those that are chosen", async () => {
  const sent = show(["approve"]);
  const section = await screen.findByRole("region", { name: "Import flows" });
  const file = new File(["{}"], "ExportData.json");
  fireEvent.drop(section, { dataTransfer: { types: ["Files"], files: [file] } });
  expect(await screen.findByText("Not imported: 2 DocumentStore")).toBeTruthy();
  const button = await screen.findByRole("button", { name: "Import 1 flow" });
  expect(sent).toMatchObject([
    { name: "Good", dry_run: true },
    { name: "Bad", dry_run: true },
  ]);
  expect(screen.getAllByText("OpenAI: credential “main”")).toHaveLength(2);
  expect(screen.getAllByText("“weather” is made")).toHaveLength(2);
  expect(screen.getByRole("checkbox", { name: "Bad" })).toHaveProperty("disabled", true);
  await userEvent.click(button);
  expect((await screen.findByRole("link", { name: "Show the flow" })).getAttribute("href")).toContain("/f/f1/default");
  expect(sent.filter((one) => !one.dry_run)).toMatchObject([{ name: "Good" }]);
});

it("is not there for those who may not write", async () => {
  show(["read", "build"]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(screen.queryByRole("region")).toBeNull();
});
