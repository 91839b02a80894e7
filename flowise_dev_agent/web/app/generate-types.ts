/** Writes `src/api/schema.d.ts`, the types of the API, from `docs/openapi.json`, unless they are up to date. */
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import openapiTS, { astToString, COMMENT_HEADER, type OpenAPI3 } from "openapi-typescript";

const DOCUMENT = "../../../docs/openapi.json";
const TYPES = "src/api/schema.d.ts";

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** The document without its examples, which would be 6 000 lines of comments; below `properties` a key is a field. */
function withoutExamples(node: unknown, areFields = false): unknown {
  if (Array.isArray(node)) return node.map((one) => withoutExamples(one));
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key]) => areFields || (key !== "example" && key !== "examples"))
      .map(([key, value]) => [key, withoutExamples(value, key === "properties" && !areFields)]),
  );
}

if (modified(TYPES) <= Math.max(modified(DOCUMENT), modified("package-lock.json"))) {
  const document = withoutExamples(JSON.parse(readFileSync(DOCUMENT, "utf8"))) as OpenAPI3;
  const types = COMMENT_HEADER + astToString(await openapiTS(document));
  // Whole at once: several checks may run side by side.
  const draft = `${TYPES}.${process.pid}`;
  writeFileSync(draft, types);
  renameSync(draft, TYPES);
}
