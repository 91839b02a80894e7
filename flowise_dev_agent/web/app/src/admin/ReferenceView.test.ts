import { expect, it } from "vitest";
import { groupsOf } from "./ReferenceView";

const call = (tag: string, summary: string) => ({ operationId: summary, tags: [tag], summary, responses: {} });

it("groups the operations by resource, and finds them by words of path and summary", () => {
  const paths = {
    "/flows": { get: call("flows", "Find flows") },
    "/flows/{id}/apply": { post: call("flows", "Apply ops") },
    "/sessions": { post: call("sessions", "Start a session") },
  };
  expect(groupsOf({ paths }, "").map(([tag, calls]) => [tag, calls.length])).toEqual([
    ["flows", 2],
    ["sessions", 1],
  ]);
  expect(groupsOf({ paths }, "POST apply").flatMap(([, calls]) => calls.map(({ path }) => path))).toEqual([
    "/flows/{id}/apply",
  ]);
  expect(groupsOf({ paths }, "nothing")).toEqual([]);
});
