import { afterEach, expect, it } from "vitest";
import { speak } from ".";
import { said } from "./sentences";

afterEach(() => speak("en"));

it("says errors of requests in the person's language, with their values taken literally", async () => {
  expect(said("There is no version 'v9'.")).toBe("There is no version 'v9'.");
  await speak("de");
  expect(said("There is no version '{{x}} (.*) $t(Approve now)'.")).toContain("{{x}} (.*) $t(Approve now)");
  expect(said("Something of a model. Nothing was stored.")).toContain("Something of a model. ");
});
