import { afterEach, expect, it } from "vitest";
import { speak } from ".";
import german from "./de.json";
import spanish from "./es.json";
import { FINDINGS, found } from "./findings";
import french from "./fr.json";
import { said, saidMarkdown } from "./sentences";

afterEach(() => speak("en"));

it("says sentences of the service in the person's language, with their values", async () => {
  const asked = "No flow matches 'Lagoon'. These are the 10 changed last of 12; which one is to be changed?";
  expect(said(asked)).toBe(asked);
  await speak("de");
  expect(said(asked)).toBe(
    "Kein Flow passt zu „Lagoon“. Das sind die 10 zuletzt geänderten von 12; welcher soll geändert werden?",
  );
  // Several sentences, some of a flow or a model.
  expect(said("The plan changed. It now has a calculator. Say what should be different.")).toBe(
    "Der Plan hat sich geändert. It now has a calculator. Sag, was anders sein soll.",
  );
  expect(said("First line\nThe flow passed.\n")).toBe("First line\nThe flow passed.\n");
  expect(said("")).toBe("");
});

it("counts in the person's language, and leaves the signs of Markdown", async () => {
  await speak("de");
  expect(said("2 nodes added, 1 removed; 1 field changed")).toBe("2 Knoten hinzugefügt, 1 entfernt; 1 Feld geändert");
  expect(said("2 nodes added, like before")).toBe("2 nodes added, like before");
  const lines = ["## Requirement", "> Status: open", "- 2026-11-23 07:00:00 **ada** (page) approved the plan"];
  expect(saidMarkdown(lines.join("\n"))).toBe(
    ["## Wunsch", "> Status: open", "- 2026-11-23 07:00:00 **ada** (Seite) hat den Plan genehmigt"].join("\n"),
  );
});

it("agrees with the number and with the state that it names", async () => {
  await speak("fr");
  expect(said("2 nodes added, 1 removed, 1 moved; 1 connection made, 1 cut")).toBe(
    "2 nœuds ajoutés, 1 supprimé, 1 déplacé\u00a0; 1 connexion créée, 1 coupée",
  );
  await speak("de");
  expect(said("The session is in_progress and cannot be cancelled.")).toBe(
    "Die Sitzung kann nicht abgebrochen werden (Status: arbeitet).",
  );
});

it("counts the pieces of a document store, one or many", async () => {
  await speak("de");
  const read = (pieces: string) => said(`Document store 'HR': 2 of 3 files read, ${pieces}`);
  expect(read("1 piece")).toBe("Dokumentenspeicher „HR“: 2 von 3 Dateien gelesen, 1 Abschnitt");
  expect(read("12 pieces")).toContain("12 Abschnitte");
});

it("knows a sentence in brackets, and one behind a list", async () => {
  await speak("de");
  const left = "The content of the answers was not judged, since no model judges here";
  expect(said(`Not shown: Every answer is short (${left}).`)).toContain(
    "(Der Inhalt der Antworten wurde nicht bewertet, da hier kein Modell bewertet)",
  );
  expect(said("There are: Rules, HR. Which document store should it answer from?")).toBe(
    "Es gibt: Rules, HR. Aus welchem Dokumentenspeicher soll er antworten?",
  );
});

it("knows a sentence inside of another one", async () => {
  await speak("de");
  expect(
    said("Attempt 2 of 5 in 1 s: Flowise at http://localhost:9 cannot be reached (All connection attempts failed)."),
  ).toBe(
    "Versuch 2 von 5 in 1 s: Flowise unter http://localhost:9 ist nicht erreichbar (kein Verbindungsversuch gelang).",
  );
});

it("takes what is typed literally: neither a value nor a name is read as a template or an expression", async () => {
  await speak("de");
  expect(said("No flow matches '{{x}} (.*) $t(Approve now)'.")).toBe(
    "Kein Flow passt zu „{{x}} (.*) $t(Approve now)“.",
  );
});

it("says what a check found in the person's language, by its code", async () => {
  for (const file of [german, french, spanish])
    expect(Object.keys(file)).toEqual(expect.arrayContaining(Object.values(FINDINGS)));
  const missing = {
    code: "REQUIRED_PARAM_MISSING",
    message: "chatOpenAI needs a value for `modelName`.",
    hint: "Use SetParam on `modelName` of chatOpenAI_0.",
    field: "modelName",
  };
  expect(found(missing)).toEqual({ message: missing.message, hint: missing.hint });
  await speak("de");
  expect(found(missing)).toEqual({ message: "„modelName“ braucht einen Wert.", hint: "" });
  // What is new here stays in the service's words.
  expect(found({ ...missing, code: "NEW_CODE" })).toEqual({ message: missing.message, hint: missing.hint });
});
