import { expect, it } from "vitest";
import { answersOf, asked, designOf, questionsOf, type Schema } from "./form";

const SCHEMA: Schema = {
  $defs: {
    FormSource: {
      properties: { kind: { type: "string", enum: ["text", "web"] }, url: { type: "string", maxLength: 2_000 } },
    },
  },
  properties: {
    name: { type: "string", maxLength: 120 },
    kind: { type: "string", enum: ["chat", "task", "steps"] },
    prompt: { anyOf: [{ type: "string", maxLength: 32_000 }, { type: "null" }] },
    temperature: { anyOf: [{ type: "number", minimum: 0, maximum: 2 }, { type: "null" }] },
    memory: { anyOf: [{ type: "string", enum: ["all", "none"] }, { type: "integer" }] },
    tools: { type: "array", items: { type: "string" } },
    sources: { type: "array", items: { $ref: "#/$defs/FormSource" } },
    steps: { type: "array", items: { type: "string" } },
  },
};
const QUESTIONS = questionsOf(SCHEMA);

it("asks for each part as its schema says", () => {
  const kinds = ["line", "choice", "text", "number", "line", "list", "rows", "list"];
  expect(QUESTIONS.map(({ kind }) => kind)).toEqual(kinds);
  expect(asked(QUESTIONS, "steps").map(({ name }) => name)).toEqual(["name", "kind", "temperature", "steps"]);
});

it("makes a design of what is filled in, and answers of a design", () => {
  const answers = {
    name: "Desk",
    kind: "chat",
    prompt: " ",
    temperature: "0.2",
    memory: "5",
    tools: "calculator\n\nSerp API\n",
    sources: [
      { kind: "web", url: "https://a.example" },
      { kind: "", url: "" },
    ],
    steps: "left over from another kind",
  };
  const design = {
    name: "Desk",
    kind: "chat",
    temperature: 0.2,
    memory: 5,
    tools: ["calculator", "Serp API"],
    sources: [{ kind: "web", url: "https://a.example" }],
  };
  expect(designOf(QUESTIONS, answers)).toEqual(design);
  expect(designOf(QUESTIONS, answersOf(QUESTIONS, design as never))).toEqual(design);
});
