import { expect, it } from "vitest";
import type { FlowReach } from "../api/types";
import { callOf, changeOf, snippetOf } from "./Reach";

const URL = "http://localhost:3000/api/v1/prediction/7e38";

it("writes a call that names the address, and the key only where one is asked for", () => {
  for (const language of ["curl", "python", "javascript"] as const) {
    expect(callOf(language, URL, false)).toContain(URL);
    expect(callOf(language, URL, false)).not.toContain("FLOWISE_KEY");
    expect(callOf(language, URL, true)).toContain("FLOWISE_KEY");
  }
});

it("writes a snippet with the flow and its server", () => {
  const snippet = snippetOf("https://flows.example/base", "7e38");
  expect(snippet).toContain('chatflowid: "7e38"');
  expect(snippet).toContain('apiHost: "https://flows.example/base"');
});

it("sends what differs and nothing else", () => {
  const limit = { messages: 5, seconds: 60, told: "Wait." };
  const reach = { starters: ["Hours?"], leads: false, origins: [], limit } as unknown as FlowReach;
  expect(changeOf(reach, { starters: ["Hours?"], leads: false, origins: [], limit: { ...limit } })).toEqual({});
  expect(changeOf(reach, { starters: [], leads: true, origins: [], limit: null })).toEqual({
    starters: [],
    leads: true,
    limit: false,
  });
});
