import { expect, it } from "vitest";
import { readable } from "./readable";
import { shownText, storedText } from "./stepText";

const mention = (name: string) =>
  `<span class="variable" data-type="mention" data-id="${name}" data-label="${name}">{{ ${name} }}</span>`;

it.each([
  ["<p>Are you sure?</p>", "Are you sure?"],
  [`<p>${mention("$flow.state.query")} </p>`, "{{ $flow.state.query }}"],
  [`<p>&lt;topic&gt;</p><p>${mention("question")}</p><p></p>`, "<topic>\n\n{{ question }}"],
  ["<p><strong>Steps</strong></p><ol><li><p>one</p></li><li><p>two</p></li></ol>", "**Steps**\n\n1. one\n\n2. two"],
  ["<p></p>", ""],
  ["<rules>Be kind & <b>short</b>.</rules>", "<rules>Be kind & <b>short</b>.</rules>"],
  ["a\nb", "a\nb"],
])("shows %j as the model gets it", (stored, shown) => {
  expect(shownText(stored)).toBe(shown);
});

it.each([
  "Say {{ question }}.",
  "a < b & c",
  "<div>as it is</div>",
  "one\n\ntwo",
  "<topic>\n\n{{ question }}",
])("writes %j so that Flowise reads the same", (text) => {
  for (const lines of [true, false]) expect(shownText(storedText(text, lines))).toBe(text);
  expect(storedText(text, true).startsWith("<p>")).toBe(text.startsWith("<div>"));
});

it("tells lists of messages without markup", () => {
  const messages = JSON.stringify([{ role: "system", content: "<p>Be kind.</p>" }]);
  expect(readable(messages)).toBe("system · Be kind.");
});

it("reads a tag that never ends in the time of its length", () => {
  const open = ` start="1"`.repeat(40_000);
  const begun = performance.now();
  expect(shownText(`<p>x</p><ol${open}`)).toBe(`x\n\n<ol${open}`);
  expect(performance.now() - begun).toBeLessThan(4_000);
});
