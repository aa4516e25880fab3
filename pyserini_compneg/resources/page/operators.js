// The operators and their strengths as controls. Their names come from the server's own description.

import { get } from "./api.js";
import { element } from "./text.js";

const SIGNS = { union: "OR", intersection: "AND", difference: "NOT" };
const STRENGTHS = {
  difference_weight: ["strength of NOT", { min: 0, max: 5, step: 0.05 }],
  cpt_terms: ["terms in AND", { min: 1, max: 50, step: 1 }],
  cpt_weight: ["weight of cpt in AND", { min: 0.05, max: 5, step: 0.05 }],
};

const EXCLUSIONS = ["any", "score", "0.2", "0.4", "0.6", "0.8"];

export async function operatorNames() {
  const description = await get("/openapi.json");
  const { parameters } = description.paths["/v1/{index}/search"].get;
  const named = Object.fromEntries(parameters.map((one) => [one.name, one.schema.enum]));
  return Object.fromEntries(Object.keys(SIGNS).map((kind) => [kind, named[kind]]));
}

/** The controls; `change` gets the name in the state and the value. */
export function operatorControls(names, state, change) {
  const controls = Object.entries(SIGNS).map(([kind, sign]) => choice(kind, sign, names[kind]));
  for (const [name, [label, limits]] of Object.entries(STRENGTHS)) {
    const input = element("input", { type: "number", name, placeholder: "default", value: state[name], ...limits, onchange: tell });
    controls.push(element("label", {}, `${label} `, input));
  }
  return [...controls, choice("exclusion", "removed by NOT!", EXCLUSIONS)];

  function choice(name, label, known) {
    const options = [...new Set(["", ...known, state[name]])].map((one) => element("option", { value: one, selected: state[name] === one }, one || "default"));
    return element("label", {}, `${label} `, element("select", { name, onchange: tell }, ...options));
  }

  function tell({ target }) {
    if (target.validity.valid) change({ [target.name]: target.value, page: "1" });
    else target.reportValidity();
  }
}
