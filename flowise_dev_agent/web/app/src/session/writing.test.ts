import { expect, it } from "vitest";
import { writingOf } from "./writing";

const PLAN =
  '{"goal": "A bot.", "nodes": [{"node_id": "pinecone_0", "node_name": "pinecone", "purpose": "keeps"}, {"node_id": "chatOpenAI_0", "node_na';

it("tells an unfinished plan in sentences and names its nodes as they come", () => {
  expect(writingOf('{"goal": "A b')).toEqual({ sentence: "Understanding your request", nodes: [] });
  expect(writingOf(PLAN.slice(0, PLAN.indexOf("keeps"))).sentence).toBe("Choosing a vector store");
  expect(writingOf(PLAN).nodes.map((one) => one.label)).toEqual(["Pinecone"]);
  const more = `${PLAN}me": "chatOpenAI", "purpose": "x"}], "values": [{"node_id": "chatOpenAI_0", "val`;
  expect(writingOf(more).sentence).toBe("Writing the texts and settings");
  expect(writingOf(more).nodes.map((one) => one.id)).toEqual(["pinecone_0", "chatOpenAI_0"]);
  expect(
    writingOf('{"ops": [{"op_type": "AddNode", "node_name": "bufferMemory", "node_id": "bufferMemory_0"').sentence,
  ).toBe("Adding Buffer Memory");
});

it("says nothing of a text that is no plan", () => {
  for (const text of ["", "Let me think", "[1, 2", '{"unknown": 1', "{{{", '{"nodes": [null, 3, {"node_name": 7}]'])
    expect(writingOf(text).nodes).toEqual([]);
  expect(writingOf('{"unknown": "secret words"').sentence).toBe("");
});
