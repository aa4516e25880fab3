// The same search by a program: the composed query, a line for the shell, and one for Python.

import { pathOf } from "./api.js";
import { element } from "./text.js";

export function programLines(index, parameters, hits, composed) {
  const url = location.origin + pathOf(`/v1/${index}/search`, { ...parameters, hits });
  return [
    ["Shell", `curl '${url.replaceAll("'", "%27")}'`],
    ["Python", python(index, parameters, hits)],
    ["Composed query, a body of POST /v1/{index}/search", JSON.stringify(composed)],
  ];
}

function python(index, { query, read, tags, filter, ...chosen }, hits) {
  const values = Object.entries(chosen).map(([name, value]) => `${name}=${isNaN(value) ? JSON.stringify(value) : value}`);
  const asked = {
    model: tags ? `tagged_reading(${JSON.stringify(query)}, ${JSON.stringify(tags.split(","))})` : `decompose(${JSON.stringify(query)})`,
    plain: `Atom(${JSON.stringify(query)})`,
    expression: JSON.stringify(query),
  }[read];
  const difference = read === "model" && values.length && !chosen.difference ? ['difference="damped"'] : [];
  const operators = values.length ? `, operators=Operators(${[...difference, ...values].join(", ")})` : "";
  const names = ["SignedImpactSearcher", ...(values.length ? ["Operators"] : []), ...(read === "model" && !tags ? ["decompose"] : [])];
  const more = { plain: "from pyserini_compneg.expression import Atom\n", model: tags ? "from pyserini_compneg.reading import tagged_reading\n" : "" };
  return `from pyserini_compneg import ${names.sort().join(", ")}\n${more[read] ?? ""}\n` +
    `with SignedImpactSearcher("indexes/${index}") as searcher:\n    hits = searcher.search(${asked}, ${hits}${operators}${filter ? `, filter=${fields(filter)}` : ""})`;
}

/** Conditions as the mapping of fields to values that Python takes. */
function fields(conditions) {
  const values = Object.create(null);
  const bounds = Object.create(null); // FIELD>=VALUE and FIELD<=VALUE are one range, of which a < excludes an end
  for (const [, name, sign, value] of conditions.map((one) => one.match(/^([^=<>]*)([<>]=?|=)(.*)$/su)).filter(Boolean)) {
    if (sign === "=") (values[name] ??= []).push(value);
    else (bounds[name] ??= {})[sign[0]] = { ">": `${value.trim()}<`, "<": `<${value.trim()}` }[sign] ?? value.trim();
  }
  for (const [name, ends] of Object.entries(bounds)) (values[name] ??= []).push(`${ends[">"] ?? ""}..${ends["<"] ?? ""}`);
  return JSON.stringify(values);
}

export function showLines(body, lines) {
  body.replaceChildren(...lines.flatMap(([name, text]) => [
    element("h2", {}, `${name} `, element("button", { type: "button", "aria-label": `Copy: ${name}`, onclick: (event) => copy(event.target, text) }, "Copy")),
    element("pre", { class: "code", tabindex: "0" }, text),
  ]));
}

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
}
