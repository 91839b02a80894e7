/** Writes `src/api/schema.d.ts`, the types of the API, from `docs/openapi.json`, unless they are up to date. */
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import openapiTS, { astToString, COMMENT_HEADER, type OpenAPI3 } from "openapi-typescript";

const DOCUMENT = "../../../docs/openapi.json";
const TYPES = "src/api/schema.d.ts";

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

if (modified(TYPES) <= Math.max(modified(DOCUMENT), modified("package-lock.json"))) {
  const document = JSON.parse(readFileSync(DOCUMENT, "utf8")) as OpenAPI3;
  const types = COMMENT_HEADER + astToString(await openapiTS(document));
  // Whole at once: several checks may run side by side.
  const draft = `${TYPES}.${process.pid}`;
  writeFileSync(draft, types);
  renameSync(draft, TYPES);
}
