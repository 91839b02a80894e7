import { useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode, useState } from "react";
import { send } from "../api/client";
import { ROOT } from "../api/early";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import "./admin.css";

interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: string[];
  type?: string;
  format?: string;
  items?: Schema;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
}
interface Content {
  schema?: Schema;
  /** Of a real request or answer. */
  example?: unknown;
}
interface Operation {
  operationId: string;
  tags?: string[];
  description?: string;
  summary?: string;
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema; description?: string }[];
  requestBody?: { content?: Record<string, Content> };
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, Content> }>;
}
interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** The API reference, made from /openapi.json: operations with parameters, bodies, responses and a curl line. */
export function ReferenceView() {
  const [words, setWords] = useState("");
  const { data, error } = useQuery({
    queryKey: ["openapi"],
    queryFn: async ({ signal }) => {
      const response = await send(new Request(`${ROOT}/openapi.json`, { signal }));
      return (await response.json()) as OpenApi;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!data) return error ? <ErrorNote error={error} /> : <p className="quiet">{t("Loading the API reference…")}</p>;
  return (
    <div className="stack reference">
      <div>
        <h1>{t("API")}</h1>
        <p className="quiet">
          {t("Everything on this page can be done through the API. OpenAPI document:")}{" "}
          <a href="openapi.json">/openapi.json</a>
        </p>
      </div>
      <label className="field narrow">
        {t("Search")}
        <input type="search" value={words} onChange={(event) => setWords(event.target.value)} />
      </label>
      {groupsOf(data, words).map(([tag, operations]) => (
        <section key={tag} className="stack tight" aria-labelledby={`tag-${tag}`}>
          <h2 id={`tag-${tag}`}>{tag}</h2>
          {operations.map(({ path, method, operation }) => (
            <details key={operation.operationId} className="card">
              <summary>
                <strong>{method.toUpperCase()}</strong> <code>{path}</code>{" "}
                <span className="quiet">{operation.summary}</span>
              </summary>
              <OperationDetails path={path} method={method} operation={operation} />
            </details>
          ))}
        </section>
      ))}
      <h2>{t("Schemas")}</h2>
      {Object.entries(data.components.schemas).map(([name, schema]) => (
        <details key={name} id={`schema-${name}`} className="card">
          <summary>
            <code>{name}</code> <span className="quiet">{schema.description}</span>
          </summary>
          <Fields schema={schema} />
        </details>
      ))}
    </div>
  );
}

interface Call {
  path: string;
  method: string;
  operation: Operation;
}

/** The operations in which each of the words stands, by their resource. */
export function groupsOf({ paths }: Pick<OpenApi, "paths">, words: string): [string, Call[]][] {
  const wanted = words.toLowerCase().split(/\s+/);
  const groups = new Map<string, Call[]>();
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods)) {
      const said = `${method} ${path} ${operation.summary} ${operation.description}`.toLowerCase();
      if (!wanted.every((word) => said.includes(word))) continue;
      const tag = operation.tags?.[0] ?? "";
      groups.set(tag, [...(groups.get(tag) ?? []), { path, method, operation }]);
    }
  return [...groups];
}

function OperationDetails({ path, method, operation }: Call) {
  const answer = Object.values(operation.responses).find((one) => exampleOf(one.content));
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  return (
    <div className="stack">
      <p>{operation.description}</p>
      {operation.parameters && operation.parameters.length > 0 && (
        <Table
          head={["Name", "In", "Type", "Description"]}
          rows={operation.parameters.map((one) => [
            one.name + (one.required ? " *" : ""),
            one.in,
            typeOf(one.schema),
            one.description,
          ])}
        />
      )}
      {body && (
        <p>
          {t("Body:")} {typeOf(body)}
        </p>
      )}
      <Table
        head={["Status", "Description", "Body"]}
        rows={Object.entries(operation.responses).map(([status, one]) => {
          const [media, content] = Object.entries(one.content ?? {})[0] ?? [];
          return [
            status,
            one.description,
            one.$ref ? (
              "Problem"
            ) : content ? (
              <>
                {typeOf(content.schema)} ({media})
              </>
            ) : (
              ""
            ),
          ];
        })}
      />
      <pre>{curl(path, method, operation)}</pre>
      {answer && (
        <details>
          <summary>{t("A real answer")}</summary>
          <pre>{exampleOf(answer.content)}</pre>
        </details>
      )}
    </div>
  );
}

function Fields({ schema }: { schema: Schema }) {
  const required = new Set(schema.required);
  return (
    <Table
      head={["Field", "Type", "Description"]}
      rows={Object.entries(schema.properties ?? {}).map(([name, one]) => [
        name + (required.has(name) ? " *" : ""),
        typeOf(one),
        one.description,
      ])}
    />
  );
}

function Table({ head, rows }: { head: string[]; rows: ReactNode[][] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div className="scroll-x" tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            {head.map((text) => (
              <th key={text} scope="col">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={String(row[0])}>
              {row.map((cell, index) => (
                <td key={head[index]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function typeOf(schema: Schema = {}): ReactNode {
  if (schema.$ref) return <code>{schema.$ref.split("/").at(-1)}</code>;
  const several = (schema.anyOf ?? schema.oneOf)?.filter((one) => one.type !== "null");
  if (several) {
    return several.map((one, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
      <Fragment key={index}>
        {index > 0 && " | "}
        {typeOf(one)}
      </Fragment>
    ));
  }
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array")
    return (
      <>
        {t("list of")} {typeOf(schema.items)}
      </>
    );
  return [schema.type, schema.format && `(${schema.format})`].filter(Boolean).join(" ") || "any";
}

/** A real request or answer as JSON; empty without one. */
function exampleOf(content: Record<string, Content> = {}): string {
  const example = content["application/json"]?.example;
  return example === undefined ? "" : JSON.stringify(example, null, 2);
}

function curl(path: string, method: string, operation: Operation): string {
  const parts = [`curl -X ${method.toUpperCase()} ${ROOT}${path}`, '-H "Authorization: Bearer $AGENT_API_KEY"'];
  if (operation.requestBody)
    parts.push("-H 'Content-Type: application/json'", `-d '${exampleOf(operation.requestBody.content) || "{...}"}'`);
  return parts.join(" \\\n  ");
}
