// The whole state of the page. It is in the URL, so that a link shows what its sender saw.

const OPERATORS = ["union", "intersection", "difference", "difference_weight", "cpt_terms", "cpt_weight", "exclusion"];

// An empty `strict` and `years` are the page's own choice.
const DEFAULTS = {
  query: "", read: "model", tags: "", strict: "", years: "", filter: "", index: "", hits: "10", page: "1", doc: "",
  ...Object.fromEntries(OPERATORS.map((name) => [name, ""])),
};

/** Whether an operator stands between two parts of a query, as in an expression; see parse of the package. */
export function isExpression(query) {
  const unquoted = query.replace(/(?<!\w)"[^"]*"(?!\w)/g, "x");
  const inside = unquoted
    .replace(/^([\s(]*((AND|OR|NOT)!?(?=[\s(]|$)|[∩∪\\]))+/, "")
    .replace(/([\s)]((AND|OR|NOT)!?|[∩∪\\])[\s)]*)+$/, "");
  return /[^\s(][^]*?([\s)](AND|OR|NOT)!?(?=[\s(])|[∩∪]|[\s)]\\(?=[\s(]))[\s(]*[^\s)]/.test(inside);
}

/** The values that a URL need not give. An expression is read as one. */
function defaultsFor(query) {
  return isExpression(query) ? { ...DEFAULTS, read: "expression" } : DEFAULTS;
}

export function stateOf(url) {
  const given = new URL(url).searchParams;
  const defaults = Object.entries(defaultsFor(given.get("query") ?? ""));
  const state = Object.fromEntries(defaults.map(([name, value]) => [name, given.get(name) ?? value]));
  return { ...state, page: /^[1-9]\d{0,8}$/.test(state.page) ? state.page : "1" };
}

export function urlOf(state) {
  const defaults = defaultsFor(state.query);
  const changed = Object.entries(state).filter(([name, value]) => value !== defaults[name]);
  const query = new URLSearchParams(changed).toString();
  return query ? `/?${query}` : "/";
}

/** The conditions FIELD=VALUE of what was typed, with commas between them. A value may hold commas, too. */
export function conditionsOf(text) {
  return text.split(/,(?=\s*[\p{L}_][\p{L}\p{N}_.-]*(?:[<>]=?|=))/u).map((one) => one.trim()).filter(Boolean);
}

/** The field of a condition. */
export function fieldOf(condition) {
  return condition.match(/^[^=<>]*/)[0];
}

/** The parameters of a query in the API; `reading` has the tags, the conditions and the strictness of plain words. */
export function parametersOf(state, { tags, conditions, strict }) {
  const chosen = OPERATORS.map((name) => [name, state[name]]);
  const fixed = [["query", state.query], ["read", state.read], ["tags", tags], ["filter", conditions], ["strict", strict ? "true" : ""]];
  return Object.fromEntries([...fixed, ...chosen].filter((one) => one[1].length));
}
