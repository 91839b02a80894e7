import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { info } from "../api/queries";
import { speak } from "../i18n";
import { texts as german } from "../i18n/de";
import { ModelLimits } from "./ModelLimits";

afterEach(async () => {
  cleanup();
  await speak("en");
});

it("says in the person's language what is lost with each model that plans", async () => {
  await speak("de");
  const client = new QueryClient();
  client.setQueryData(info().queryKey, {
    version: "1",
    reasoning: { engine: "openai", model: "small", error: null },
    models: [
      {
        model: "small",
        checked: {
          checked_at: "2026-03-05T12:00:00Z",
          answers: true,
          schema_held: true,
          prompt_only: false,
          tools: false,
          tools_with_schema: false,
          reads_whole_prompt: true,
          window: 8_192,
          output_tokens: 512,
        },
        lacks: ["It calls no tools.", "It has no price."],
        texts: {
          "lacks.0": { code: "interrupt.lost_tools", text: "" },
          "lacks.1": { code: "model.unpriced", text: "" },
        },
      },
      { model: "large", checked: null, lacks: [] },
    ],
    local_models: [],
    offer: null,
  });
  render(
    <QueryClientProvider client={client}>
      <ModelLimits />
    </QueryClientProvider>,
  );
  const small = within(screen.getByRole("region", { name: "small" }));
  expect(small.getAllByRole("listitem").map((one) => one.textContent)).toEqual([
    german["interrupt.lost_tools"],
    german["model.unpriced"],
  ]);
  expect(small.getByText(/liest 8192 Tokens/).textContent).toMatch(/am 05\.03\.2026, .* bis zu 512\./);
  const large = within(screen.getByRole("region", { name: "large" }));
  expect(large.getByText(/Noch nicht geprüft/)).toBeTruthy();
  expect(large.queryAllByRole("listitem")).toEqual([]);
});
