import { EditorView } from "@codemirror/view";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { nodeOptions, nodeType } from "../api/queries";
import type { Schema } from "../ui/form/schema";
import { EditingContext, edited, opsOf, useEdits } from "./edits";
import { NodeForm } from "./NodeForm";
import { node } from "./sample";

const ROW = "lines[$index].kind";
const FORM: Schema = {
  properties: {
    tools: {
      title: "Tools",
      type: "array",
      items: {
        properties: {
          chosen: { title: "Tool", type: "string", "x-lists-options": true, "x-config": "chosenConfig" },
          human: { title: "Ask a person", type: "boolean" },
        },
      },
    },
    messages: {
      title: "Messages",
      type: "array",
      items: { properties: { content: { title: "Content", type: "string", "x-rows": 4, "x-variables": true } } },
    },
    lines: {
      title: "Lines",
      type: "array",
      items: {
        properties: {
          kind: { title: "Kind", type: "string", oneOf: [{ const: "text" }, { const: "number" }], default: "text" },
          value: {
            anyOf: [
              { title: "Words", type: "string", "x-show": { [ROW]: "text" } },
              { title: "Amount", type: "number", "x-show": { [ROW]: "number" }, default: 0 },
            ],
          },
        },
      },
    },
    days: {
      title: "Days",
      type: "array",
      items: { type: "string" },
      "x-options": [{ const: "Mon" }, { const: "Tue" }],
    },
    secret: { title: "Headers", type: "array", items: { properties: { value: { title: "Value", type: "string" } } } },
    bound: { title: "Mails", type: "array", items: { properties: { name: { title: "Name", type: "string" } } } },
    model: { title: "Model", type: "string", "x-lists-options": true, "x-config": "modelConfig" },
    prompt: { title: "Prompt", type: "string", default: "You are a helpful assistant." },
    style: { title: "Style", type: "string", "x-additional": true, default: "plain" },
    limit: { title: "Limit", type: "number", default: 3 },
  },
};
const params = (values: Record<string, unknown>) =>
  Object.entries(values).map(([name, value]) => ({
    name,
    label: name,
    value: typeof value === "string" ? value : JSON.stringify(value),
    cut: JSON.stringify(value).includes("(hidden)"),
  }));
const AGENT = node("agent_0", {
  name: "agentAgentflow",
  params: params({
    messages: [{ content: "<p>Be &lt;kind&gt;.</p>" }, { content: "<p>As  it is</p>" }],
    tools: [
      { chosen: "search", chosenConfig: { chosen: "search", most: 5 } },
      { chosen: "sum", human: true },
    ],
    lines: [{ kind: "text", value: "one" }],
    days: ["Mon"],
    secret: [{ value: "(hidden)" }],
    bound: [{ name: "mail", nameConfig: { FLOWISE_CREDENTIAL_ID: "bound" } }],
    model: "large",
    modelConfig: { model: "large", heat: 0.9 },
  }),
});

let sent: unknown;
let client: QueryClient;

function Form() {
  const editing = useEdits("q1");
  const marked = { node: AGENT, mark: "same" as const, fields: [] };
  const drawn = edited({ nodes: [marked], edges: [] } as never, editing.edits).nodes[0];
  sent = opsOf(editing.edits);
  return (
    <EditingContext value={editing}>
      <NodeForm node={drawn?.node ?? AGENT} instance="here" />
      <button type="button" onClick={() => editing.undo?.()}>
        Undo
      </button>
    </EditingContext>
  );
}

beforeEach(async () => {
  client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  const give = (name: string, form: Schema) =>
    client.setQueryData(nodeType(name, "here").queryKey, { form, node: { label: name } } as never);
  const list = (param: string, ...names: string[]) =>
    client.setQueryData(nodeOptions("agentAgentflow", param, "here").queryKey, {
      options: names.map((name) => ({ name, label: name })),
    } as never);
  give("agentAgentflow", FORM);
  give("search", { properties: { most: { title: "Most results", type: "number" } } });
  give("sum", { properties: {} });
  give("large", { properties: { heat: { title: "Temperature", type: "number" } } });
  list("chosen", "search", "sum", "weather");
  list("model", "large", "small");
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  render(
    <QueryClientProvider client={client}>
      <Form />
    </QueryClientProvider>,
  );
});
afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

const part = (name: string) => within(screen.getByRole("group", { name }));
const press = (name: string, where: { getByRole: typeof screen.getByRole } = screen) =>
  userEvent.click(where.getByRole("button", { name }));
const set = (param_name: string, value: unknown) => ({ op_type: "SetParam", node_id: "agent_0", param_name, value });
const [SEARCH, SUM] = [
  { chosen: "search", chosenConfig: { chosen: "search", most: 5 } },
  { chosen: "sum", human: true },
];

it("adds, moves and takes out what is in a list, with the focus where a person goes on", async () => {
  await press("Move down", part("Tools 1"));
  expect(sent).toEqual([set("tools", [SUM, SEARCH])]);
  await waitFor(() => expect(document.activeElement).toBe(part("Tools 2").getByRole("button", { name: "Move up" })));
  await press("Remove", part("Tools 1"));
  expect(sent).toEqual([set("tools", [SEARCH])]);
  await press("Add to tools");
  await waitFor(() => expect(document.activeElement).toBe(part("Tools 2").getByLabelText("Tool")));
  await userEvent.selectOptions(part("Tools 2").getByLabelText("Tool"), "weather");
  expect(sent).toEqual([set("tools", [SEARCH, { chosen: "weather", human: "" }])]);
  for (const _ of [1, 2, 3]) await press("Undo");
  expect(sent).toEqual([set("tools", [SUM, SEARCH])]);
});

it("edits the settings of a chosen tool and of a chosen model, and forgets those of another tool", async () => {
  const most = part("Tools 1").getByLabelText("Most results");
  await userEvent.clear(most);
  await userEvent.type(most, "7");
  await userEvent.tab();
  const changed = { ...SEARCH, chosenConfig: { chosen: "search", most: 7 } };
  expect(sent).toEqual([set("tools", [changed, SUM])]);
  await userEvent.selectOptions(part("Tools 1").getByLabelText("Tool"), "sum");
  expect(sent).toEqual([set("tools", [{ chosen: "sum" }, SUM])]);
  const heat = screen.getByLabelText("Temperature");
  expect(heat).toHaveProperty("value", "0.9");
  await userEvent.clear(heat);
  await userEvent.type(heat, "0.2");
  await userEvent.tab();
  expect(sent).toContainEqual(set("modelConfig.heat", 0.2));
  expect(screen.getByLabelText("Temperature")).toHaveProperty("value", "0.2");
});

it("asks in each row for what its own kind needs, and takes several choices", async () => {
  const row = part("Lines 1");
  expect(row.queryByLabelText("Amount")).toBeNull();
  await userEvent.selectOptions(row.getByLabelText("Kind"), "number");
  expect(row.queryByLabelText("Words")).toBeNull();
  await userEvent.clear(row.getByLabelText("Amount"));
  await userEvent.type(row.getByLabelText("Amount"), "3");
  await userEvent.tab();
  await userEvent.click(part("Days").getByLabelText("Tue"));
  expect(sent).toEqual([set("lines", [{ kind: "number", value: 3 }]), set("days", ["Mon", "Tue"])]);
});

it("does not offer a list with a secret, which would be lost, and sends a credential back as it is shown", async () => {
  expect(screen.queryByLabelText("Value")).toBeNull();
  expect(screen.getAllByText(/holds a secret/)).toHaveLength(1);
  await press("Add to mails");
  expect(sent).toEqual([
    set("bound", [{ name: "mail", nameConfig: { FLOWISE_CREDENTIAL_ID: "bound" } }, { name: "" }]),
  ]);
});

/** The editor of a field, once it is there. */
const editorOf = (field: string) =>
  waitFor(() => {
    const place = document.querySelector<HTMLElement>(`[data-field="${field}"]`);
    const content = place?.querySelector(".code-field")?.shadowRoot?.querySelector<HTMLElement>(".cm-content");
    if (!place || !content) throw new Error("the editor is not there yet");
    return { place, content };
  });
function write(content: HTMLElement, insert: string) {
  const view = EditorView.findFromDOM(content);
  act(() => {
    view?.dispatch({ changes: { from: 0, insert } });
    content.dispatchEvent(new FocusEvent("blur"));
  });
}

it("shows a text of a step without markup, and leaves each byte of those that are not written", async () => {
  const { place, content } = await editorOf("messages[0].content");
  expect(place.querySelector("[name=content]")).toHaveProperty("value", "Be <kind>.");
  write(content, "");
  expect(sent).toEqual([]);
  write(content, "Hello. ");
  expect(sent).toEqual([set("messages", [{ content: "Hello. Be <kind>." }, { content: "<p>As  it is</p>" }])]);
});

it("shows what the flow has, and never a default of the type as its value", async () => {
  const prompt = await editorOf("prompt");
  expect(prompt.place.querySelector("[name=prompt]")).toHaveProperty("value", "");
  expect(prompt.content.getAttribute("aria-label")).toBe("Prompt");
  expect(screen.getByText("Not set. Default: You are a helpful assistant.")).toBeTruthy();
  expect(screen.getByLabelText("Limit")).toHaveProperty("value", "");
  expect(screen.getByLabelText("Style").closest("details")).toBeTruthy();
  expect(prompt.place.closest("details")).toBeNull();
  write(prompt.content, "Be kind.");
  expect(sent).toEqual([set("prompt", "Be kind.")]);
});

it("keeps what is chosen when the server's options come later", async () => {
  cleanup();
  const { queryKey } = nodeOptions("agentAgentflow", "model", "here");
  const options = client.getQueryData(queryKey);
  client.removeQueries({ queryKey });
  render(
    <QueryClientProvider client={client}>
      <Form />
    </QueryClientProvider>,
  );
  expect(screen.getByLabelText("Model")).toHaveProperty("value", "large");
  const [small, large] = ["small", "large"].map((name) => ({ name, label: name }));
  act(() => client.setQueryData(queryKey, { ...options, options: [small, large] } as never));
  await waitFor(() => expect(screen.getByLabelText("Model").children).toHaveLength(2));
  expect(screen.getByLabelText("Model")).toHaveProperty("value", "large");
});
