import { expect, it } from "vitest";
import { asked, fieldsOf, filledIn, readValue, type Schema, textOf } from "./schema";

const CHAT = { "x-show": { kind: ["chat"] } };
const SCHEMA: Schema = {
  $defs: {
    FormSource: {
      properties: { kind: { type: "string", enum: ["text", "web"] }, url: { type: "string", maxLength: 2_000 } },
    },
    FormSchedule: {
      properties: { time: { type: "string" }, weekdays: { type: "array", items: { type: "string" } } },
      required: ["time"],
    },
    FormStep: {
      properties: {
        kind: { type: "string", enum: ["answer", "reply"] },
        prompt: { type: "string", maxLength: 32_000, "x-show": { kind: ["answer"] } },
        message: { type: "string", maxLength: 32_000, "x-show": { kind: ["reply"] } },
      },
    },
  },
  required: ["name"],
  properties: {
    name: { type: "string", maxLength: 120 },
    kind: { type: "string", enum: ["chat", "task", "steps"], default: "chat" },
    prompt: { anyOf: [{ type: "string", maxLength: 32_000 }, { type: "null" }] },
    temperature: { anyOf: [{ type: "number", minimum: 0, maximum: 2 }, { type: "null" }] },
    memory: { anyOf: [{ type: "string", enum: ["all", "none"] }, { type: "integer" }], ...CHAT },
    tools: { type: "array", items: { type: "string" }, ...CHAT },
    sources: { type: "array", items: { $ref: "#/$defs/FormSource" }, ...CHAT },
    start: { type: "string", enum: ["chat", "schedule"], default: "chat", "x-show": { kind: ["steps"] } },
    schedule: {
      anyOf: [{ $ref: "#/$defs/FormSchedule" }, { type: "null" }],
      "x-show": { kind: ["steps"], start: ["schedule"] },
    },
    steps: { type: "array", items: { $ref: "#/$defs/FormStep" }, "x-show": { kind: ["steps"] } },
  },
};
const FIELDS = fieldsOf(SCHEMA);

it("reads from a schema which fields there are and which of them are asked for", () => {
  const kinds = ["line", "choice", "text", "number", "line", "list", "rows", "choice", "group", "rows"];
  expect(FIELDS.map(({ kind }) => kind)).toEqual(kinds);
  expect(FIELDS.filter((one) => one.required).map(({ name }) => name)).toEqual(["name"]);
  const names = (values: Record<string, unknown>) => asked(FIELDS, values).map(({ name }) => name);
  expect(names({ kind: "steps" })).toEqual(["name", "kind", "prompt", "temperature", "start", "steps"]);
  expect(names({ kind: "steps", start: "schedule" })).toContain("schedule");
  expect(names({})).not.toContain("steps");
});

it("leaves out what is empty or belongs to something else", () => {
  const values = {
    name: "Desk ",
    kind: "chat",
    prompt: " ",
    temperature: 0.2,
    memory: 5,
    tools: ["calculator", "", " Serp API", ""],
    sources: [
      { kind: "web", url: "https://a.example" },
      { kind: "", url: "" },
    ],
    steps: [{ kind: "answer", prompt: "left over from another kind" }],
  };
  expect(filledIn(FIELDS, values)).toEqual({
    name: "Desk",
    kind: "chat",
    temperature: 0.2,
    memory: 5,
    tools: ["calculator", "Serp API"],
    sources: [{ kind: "web", url: "https://a.example" }],
  });
});

it("fills in each step and a group with what belongs to it", () => {
  const values = {
    name: "Desk",
    kind: "steps",
    start: "schedule",
    schedule: { time: "07:15 ", weekdays: [] },
    steps: [
      { kind: "answer", prompt: "Write it.", message: "of another kind" },
      { kind: "reply", prompt: "of another kind", message: "" },
    ],
  };
  const steps = [{ kind: "answer", prompt: "Write it." }, { kind: "reply" }];
  expect(filledIn(FIELDS, values)).toEqual({ ...values, schedule: { time: "07:15" }, steps });
  expect(filledIn(FIELDS, { ...values, schedule: { time: "" } })).not.toHaveProperty("schedule");
  expect(filledIn(FIELDS, { ...values, start: "chat" })).not.toHaveProperty("schedule");
});

it("turns what is typed into what the schema wants, and back", () => {
  const typed: [string, string, unknown][] = [
    ["temperature", "0.2", 0.2],
    ["temperature", "", undefined],
    ["memory", "5", 5],
    ["memory", "none", "none"],
    ["tools", "one\ntwo\n", ["one", "two", ""]],
    ["name", "5", "5"],
  ];
  for (const [name, text, value] of typed) {
    const field = FIELDS.find((one) => one.name === name);
    if (!field) throw new Error(name);
    expect(readValue(field, text)).toEqual(value);
    expect(textOf(value)).toBe(text);
  }
});

it("reads the schema of a node type: choices, conditions, formats, and one name with two meanings", () => {
  const node = fieldsOf({
    properties: {
      mode: { title: "Mode", type: "string", oneOf: [{ const: "a", title: "First" }, { const: "b" }], default: "a" },
      code: { title: "Code", type: "string", format: "code", "x-show": { mode: ["b"] } },
      key: { title: "Key", type: "string", format: "password", "x-hide": { mode: "a" } },
      size: {
        anyOf: [
          { title: "Size", type: "number", "x-show": { mode: "a" } },
          { title: "Size in words", type: "string", "x-show": { mode: "b" } },
        ],
      },
      stream: { title: "Stream", type: "boolean", description: 'See the <a href="https://a.example">docs</a>.' },
      model: { title: "Model", type: "string", "x-options": [{ const: "m", title: "M" }], "x-lists-options": true },
    },
  });
  const shown = (values: Record<string, unknown>) => asked(node, values).map(({ label, kind }) => `${label}: ${kind}`);
  expect(shown({})).toEqual(["Mode: choice", "Size: number", "Stream: switch", "Model: choice"]);
  expect(shown({ mode: "b" })).toEqual([
    "Mode: choice",
    "Code: text",
    "Key: secret",
    "Size in words: line",
    "Stream: switch",
    "Model: choice",
  ]);
  expect(node.find((one) => one.name === "stream")?.hint).toBe("See the docs.");
  expect(node[0]?.choices).toEqual([
    { value: "a", label: "First" },
    { value: "b", label: "b" },
  ]);
});

it("asks for no field that hangs on an empty one, and reads lists and any value in conditions", () => {
  const fields = fieldsOf({
    properties: {
      type: { type: "string", oneOf: [{ const: "fixed" }, { const: "dynamic" }] },
      text: { type: "string", "x-show": { type: "fixed" } },
      actions: { type: "array", items: { type: "string" } },
      subject: { type: "string", "x-show": { actions: ["send", "draft"] } },
      tool: { type: "string" },
      given: { type: "string", "x-show": { tool: ".+" } },
      elsewhere: { type: "string", "x-show": { unknown: "x" } },
    },
  });
  const names = (values: Record<string, unknown>) => asked(fields, values).map(({ name }) => name);
  expect(names({})).toEqual(["type", "actions", "tool", "elsewhere"]);
  expect(names({ type: "fixed", actions: '["send"]', tool: "search" })).toEqual(fields.map(({ name }) => name));
  expect(names({ type: "dynamic", actions: ["read"] })).toEqual(["type", "actions", "tool", "elsewhere"]);
  // It has a value that is not shown: what hangs on it may count.
  expect(names({ type: undefined })).toContain("text");
});
