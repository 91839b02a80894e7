import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { bareNode } from "./layout";
import type { MarkedNode } from "./merge";
import { NodeDetails } from "./NodeDetails";

afterEach(cleanup);

it("shows the settings of a component in a step as fields of their own, in words", () => {
  const config = {
    agentModel: "chatOpenAI",
    modelName: "gpt-4o",
    temperature: 0.2,
    FLOWISE_CREDENTIAL_ID: "bound",
    cache: "",
  };
  const node = bareNode("agentAgentflow_0", "agentAgentflow", {
    params: [
      { name: "agentModel", label: "Model", value: "chatOpenAI", cut: false },
      { name: "agentModelConfig", label: "agentModelConfig", value: JSON.stringify(config), cut: false },
    ],
  });
  const shown = (marked: MarkedNode) => {
    const { container } = render(
      <QueryClientProvider client={new QueryClient()}>
        <NodeDetails marked={marked} onClose={() => {}} />
      </QueryClientProvider>,
    );
    return [...container.querySelectorAll("dt, .old-new strong")].map((one) => one.textContent);
  };
  expect(shown({ node, mark: "same", fields: [] })).toEqual(["Model", "Model Name", "Temperature", "Credential"]);
  const fields = [{ name: "agentModelConfig.temperature", before: "", after: "0.2" }];
  expect(shown({ node, mark: "changed", fields })).toEqual(["Temperature", "Model", "Model Name", "Credential"]);
});
