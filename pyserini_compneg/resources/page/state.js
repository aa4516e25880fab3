// The whole state of the page. It is in the URL, so that a link shows what its sender saw.

const OPERATORS = ["union", "intersection", "difference", "difference_weight", "cpt_terms", "cpt_weight", "exclusion"];

const DEFAULTS = {
  query: "", read: "model", tags: "", filter: "", index: "", hits: "10", compare: "", first: "", second: "",
  ...Object.fromEntries(["a", "b"].flatMap((side) => OPERATORS.map((name) => [`${side}.${name}`, ""]))),
};

export function stateOf(url) {
  const given = new URL(url).searchParams;
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
}

export function urlOf(state) {
  const changed = Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]);
  const query = new URLSearchParams(changed).toString();
  return query ? `/?${query}` : "/";
}

/** The conditions FIELD=VALUE of what was typed, with commas between them. A value may hold commas, too. */
export function conditionsOf(text) {
  return text.split(/,(?=\s*[\p{L}_][\p{L}\p{N}_.-]*(?:[<>]=?|=))/u).map((one) => one.trim()).filter(Boolean);
}

/** The parameters of the API for one of the two settings, "a" or "b". */
export function parametersOf(state, side) {
  const chosen = OPERATORS.map((name) => [name, state[`${side}.${name}`]]);
  const tags = state.read === "model" ? state.tags : "";
  const fixed = [["query", state.query], ["read", state.read], ["tags", tags], ["filter", conditionsOf(state.filter)]];
  return Object.fromEntries([...fixed, ...chosen].filter((one) => one[1].length));
}
