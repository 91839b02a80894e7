import { afterEach, expect, it } from "vitest";
import english from "../../../../texts/en.json";
import { speak } from ".";
import { texts as german } from "./de";
import { texts as spanish } from "./es";
import { texts as french } from "./fr";
import { findingText, textOf, worded, wordedList } from "./texts";

afterEach(() => speak("en"));

const bare = (code: string) => code.replace(/_(one|many|other)$/, "");

it("has every code of the service in every language", () => {
  for (const file of [german, french, spanish])
    expect([...new Set(Object.keys(file).map(bare))].toSorted()).toEqual(
      [...new Set(Object.keys(english).map(bare))].toSorted(),
    );
});

it("says a text by its code, its count and texts inside of it, else in English", async () => {
  const ended = { code: "route.ends", params: { outcome: { code: "outcome.accepted", text: "accepted" } } };
  expect(textOf(ended, "as the service said it")).toBe("as the service said it");
  await speak("de");
  expect(textOf(ended, "")).toContain(german["outcome.accepted"]);
  expect(textOf({ code: "count.pieces", params: { count: 1 } }, "")).toBe(
    german["count.pieces_one"].replace("{{count}}", "1"),
  );
  expect(textOf({ code: "new.code" }, "{{x}} in English")).toBe("{{x}} in English");
});

it("takes values literally", async () => {
  await speak("de");
  const code = { code: "verdict.step_not_run", params: { step: "{{step}} $t(Approve)" } };
  expect(textOf(code, "")).toContain("{{step}} $t(Approve)");
});

it("says fields of a document, and lists, by the codes beside them", async () => {
  await speak("de");
  const texts = { title: { code: "version.found" }, "notes.1": { code: "verdict.no_document" } };
  const document = { title: "As it was found", notes: ["of a model", "No document was found."], texts };
  expect(worded(document, "title")).toBe(german["version.found"]);
  expect(wordedList(document, "notes")).toEqual(["of a model", german["verdict.no_document"]]);
});

it("says a finding with the name of its node", async () => {
  const finding = { code: "NOT_A_NUMBER", params: { node: "Shop", field: "Temperature" }, message: "English" };
  expect(findingText(finding)).toBe("English");
  await speak("de");
  expect(findingText(finding)).toBe("Shop: „Temperature“ braucht eine Zahl.");
  expect(findingText({ ...finding, code: "NEW_CODE" })).toBe("English");
  expect(findingText({ ...finding, code: "VALUE_IGNORED" })).toContain(german["remedy.VALUE_IGNORED"]);
});
