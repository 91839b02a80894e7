import { expect, it } from "vitest";
import { readable } from "./readable";

const json = (value: unknown) => readable(JSON.stringify(value));

it("says lists and settings in lines, and leaves other texts as they are", () => {
  const tool = { selectedTool: "search", needsPerson: true, selectedToolConfig: { selectedTool: "search", most: 5 } };
  expect(json([tool, { selectedTool: "sum", needsPerson: false }])).toBe("search · Needs Person · Most 5\nsum");
  expect(json([{ role: "system", content: "Be kind." }, "plain"])).toBe("system · Be kind.\nplain");
  expect(json({ modelName: "gpt-4o", temperature: 0.2, cache: "" })).toBe("Model Name gpt-4o · Temperature 0.2");
  const pdf = "data:application/pdf;base64,JVBERi0=,filename:hours.pdf";
  expect([readable(pdf), json([pdf]), readable("data:application/pdf;base64,JVBERi…")]).toEqual([
    "hours.pdf",
    "hours.pdf",
    "application/pdf",
  ]);
  for (const text of ["{{ question }}", "[ATTACHMENT: a.pdf]", "1", "{}x"]) expect(readable(text)).toBe(text);
});
