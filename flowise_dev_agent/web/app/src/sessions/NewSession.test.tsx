import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { NewSession } from "./NewSession";
import { type Draft, EMPTY } from "./start";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("shows eight examples with their picture and needs on a first run, and a short list later", async () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  const kept: (Draft | null)[] = [];
  const form = (first: boolean) => (
    <QueryClientProvider client={new QueryClient()}>
      <NewSession draft={EMPTY} keep={(draft) => kept.push(draft)} first={first} arrived />
    </QueryClientProvider>
  );
  const { rerender, container } = render(form(true));
  expect(screen.getByRole("list", { name: "Examples" }).children).toHaveLength(8);
  expect(container.querySelectorAll(".example svg")).toHaveLength(8);
  expect(screen.getAllByText(/^Needs .*key/).length).toBeGreaterThan(6);
  await userEvent.click(screen.getByRole("button", { name: /Translator/ }));
  await vi.waitFor(() => expect(kept[0]?.requirement).toContain("translates every message into French"));
  rerender(form(false));
  expect(screen.getByRole("list", { name: "Examples" }).children).toHaveLength(4);
});

it("hands over the text of an example with it, which says that it is one", async () => {
  const stored = { id: "f1", facts: { name: "example-opening-hours.txt", kind: "text" } };
  vi.stubGlobal("fetch", async (request: Request) =>
    request.url.endsWith("/attachments") ? Response.json(stored) : new Promise(() => {}),
  );
  const kept: (Draft | null)[] = [];
  render(
    <QueryClientProvider client={new QueryClient()}>
      <NewSession draft={EMPTY} keep={(draft) => kept.push(draft)} first arrived />
    </QueryClientProvider>,
  );
  await userEvent.click(screen.getByRole("button", { name: /Answers from a text/ }));
  await vi.waitFor(() => expect(kept.at(-1)?.files).toEqual([{ id: "f1", name: stored.facts.name, kind: "text" }]));
  expect(kept.at(-1)?.requirement).toContain("opening hours");
});

it("links the limits of the model that plans, beside its name", () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  const client = new QueryClient();
  const reasoning = { engine: "openai", model: "small", error: null };
  client.setQueryData(["health"], { reasoning, flowise: {}, model_stand_in: false });
  client.setQueryData(["info"], { models: [{ model: "small", checked: null, lacks: ["It calls no tools."] }] });
  render(
    <QueryClientProvider client={client}>
      <NewSession draft={EMPTY} keep={() => {}} first={false} arrived />
    </QueryClientProvider>,
  );
  expect(screen.getByText(/Plans with small/)).toBeTruthy();
  expect(screen.getByRole("link", { name: "Limits of the model" }).title).toBe("It calls no tools.");
});

it("says in one sentence what goes without a model, and links one where this person can connect it", () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  const said = (source: string, scopes: string[]) => {
    cleanup();
    const client = new QueryClient();
    const reasoning = { engine: "deterministic", model: null, error: null };
    client.setQueryData(["health"], { reasoning, flowise: {}, model_stand_in: false });
    client.setQueryData(["info"], { models: [], offer: "Set a variable." });
    client.setQueryData(["caller"], { scopes });
    client.setQueryData(["connections"], { model: { source } });
    const { container } = render(
      <QueryClientProvider client={client}>
        <NewSession draft={EMPTY} keep={() => {}} first={false} arrived />
      </QueryClientProvider>,
    );
    expect(container.textContent).not.toContain("Set a variable.");
    return container.querySelector(".push")?.textContent;
  };
  const sentence = "Without a model your words choose one of the ready-made flows below. That is free.";
  expect(said("none", ["admin"])).toBe(`${sentence} · Connect a model`);
  expect(said("none", ["sessions"])).toBe(sentence);
  expect(said("environment", ["admin"])).toBe(sentence);
});
