// The API's reference, drawn from /openapi.json: operations, parameters, bodies, answers, a curl line for each.

import { call } from "/assets/api.js";
import { $, el } from "/assets/dom.js";

try {
  draw(await call("/openapi.json"));
} catch (error) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

function draw(document) {
  const { schemas } = document.components;
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const id = operation.operationId;
      const title = `${method.toUpperCase()} ${path}`;
      $("operations").append(el("li", {}, el("a", { href: `#${id}` }, title)));
      $("reference").append(el("article", { id },
        el("h2", {}, title),
        el("p", {}, operation.description ?? operation.summary ?? ""),
        parameters(operation.parameters ?? []),
        body(operation.requestBody),
        answers(operation.responses),
        el("h3", {}, "curl"),
        el("pre", {}, curl(method, path, operation)),
      ));
    }
  }
  $("reference").append(...Object.entries(schemas).map(([name, schema]) => model(name, schema)));
}

function parameters(list) {
  if (!list.length) return null;
  return [el("h3", {}, "Parameters"), table(["Name", "In", "Type", "Meaning"], list.map((one) =>
    [one.name + (one.required ? " *" : ""), one.in, typeOf(one.schema), one.description ?? ""]))];
}

function body(request) {
  const schema = request?.content?.["application/json"]?.schema;
  return schema && [el("h3", {}, "Body"), el("p", {}, typeOf(schema))];
}

function answers(responses) {
  return [el("h3", {}, "Answers"), table(["Status", "Meaning", "Body"], Object.entries(responses).map(([status, one]) => {
    const [media, content] = Object.entries(one.content ?? {})[0] ?? [];
    return [status, one.description ?? "", one.$ref ? "Problem" : content ? [typeOf(content.schema), ` (${media})`] : ""];
  }))];
}

function model(name, schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([field, one]) =>
    [field + (required.has(field) ? " *" : ""), typeOf(one), one.description ?? ""]);
  return el("article", { id: `schema-${name}` }, el("h2", {}, name), el("p", {}, schema.description ?? ""),
    rows.length > 0 && table(["Field", "Type", "Meaning"], rows));
}

function typeOf(schema = {}) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return el("a", { href: `#schema-${name}` }, name);
  }
  const several = schema.anyOf ?? schema.oneOf;
  if (several) {
    const parts = several.filter((one) => one.type !== "null").map((one) => typeOf(one));
    return el("span", {}, parts.flatMap((part, index) => (index ? [" | ", part] : [part])));
  }
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return el("span", {}, "list of ", typeOf(schema.items));
  return [schema.type, schema.format && `(${schema.format})`].filter(Boolean).join(" ") || "any";
}

function table(head, rows) {
  return el("table", {},
    el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))));
}

function curl(method, path, operation) {
  const parts = [`curl -X ${method.toUpperCase()} ${location.origin}${path}`, '-H "Authorization: Bearer $AGENT_API_KEY"'];
  if (operation.requestBody) parts.push("-H 'Content-Type: application/json'", "-d '{...}'");
  return parts.join(" \\\n  ");
}
