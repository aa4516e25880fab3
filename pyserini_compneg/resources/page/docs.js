// The routes, from the server's own description.

import { get } from "./api.js";
import { element } from "./text.js";

function route(method, path, about) {
  return element("section", {},
    element("h2", {}, element("code", {}, `${method.toUpperCase()} ${path}`)),
    element("p", {}, `${about.summary}. ${about.description ?? ""}`),
    about.parameters ? table(about.parameters.map((one) => [one.name, one.in, kind(one.schema), one.description ?? one.schema.description ?? ""])) : "",
    about.requestBody ? table(bodyOf(about.requestBody.content)) : "",
    element("p", { class: "quiet" }, `Answers: ${Object.keys(about.responses).join(", ")}`));
}

/** The fields of a body in JSON; any other body is one row with its media type. */
function bodyOf(content) {
  const fields = content["application/json"]?.schema.properties;
  if (!fields) return Object.entries(content).map(([type, { schema }]) => [type, "body", kind(schema), schema.description ?? ""]);
  return Object.entries(fields).map(([name, schema]) => [name, "body", kind(schema), schema.description ?? ""]);
}

function kind(schema) {
  const types = schema.enum ?? (schema.anyOf ?? [schema]).map((one) => one.type ?? "any").filter((type) => type !== "null");
  return `${types.join(", ")}${schema.default === undefined || schema.default === null ? "" : ` (default ${schema.default})`}`;
}

function table(rows) {
  const head = element("tr", {}, ...["name", "in", "type", "meaning"].map((name) => element("th", { scope: "col" }, name)));
  return element("table", { class: "wide" }, element("thead", {}, head),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))));
}

const { info, paths } = await get("/openapi.json");
document.getElementById("routes").append(element("p", {}, info.description),
  ...Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => route(method, path, about))));
