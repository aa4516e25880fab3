// The page: what is typed and chosen makes the state, the state makes requests, their answers are shown.

import { get, useKey } from "./api.js";
import { facetRequests, showFacets } from "./facets.js";
import { differenceTable, rankingList } from "./hits.js";
import { operatorControls, operatorNames } from "./operators.js";
import { programLines, showLines } from "./program.js";
import { showReading } from "./reading.js";
import { conditionsOf, parametersOf, stateOf, urlOf } from "./state.js";
import { element } from "./text.js";

const at = (id) => document.getElementById(id);
const MOST_TEXT = 3000;
const PATIENCE = 250; // ms before a skeleton is shown

let state = stateOf(location.href);
let indexes = [];
let fields = {};
let languages = {};
let names = null;
let loaded = null;
let running = null;
let shown = []; // the answers, with all pages so far
let facets = {};

/** Asks the server once what it has. */
async function load() {
  const health = await get("/health");
  names = await operatorNames();
  [indexes, fields, languages] = [Object.keys(health.indexes), health.filter_fields, health.languages];
  at("index").replaceChildren(...indexes.map((name) => element("option", {}, name)));
  at("index-label").hidden = indexes.length < 2;
  showChoices();
}

/** Changes the state. What is typed replaces the entry of the history, what is asked adds one. */
function change(values, isNew = true) {
  remember(values, isNew);
  search();
}

function remember(values, isNew) {
  state = { ...state, ...values };
  const url = urlOf(state);
  history[isNew && url !== location.pathname + location.search ? "pushState" : "replaceState"](null, "", url);
}

/** The index that is searched; an unknown one is left to the server to refuse. */
function index() {
  return state.index || indexes[0];
}

function showState() {
  for (const name of ["query", "read", "hits", "filter"]) at(name).value = state[name];
  at("compare").checked = state.compare !== "";
  if (names) showChoices();
}

function showChoices() {
  at("index").value = index();
  showFilter();
  showOperators();
}

/** The filter is there where there is something to filter by; or to take away. */
function showFilter() {
  const known = fields[index()] ?? [];
  at("filter-label").hidden = !known.length && !state.filter;
  at("filter").placeholder = known.map((name) => `${name}=…`).join(", ");
}

/** Plain words are read in English. An index of another language takes expressions. */
function showReadings() {
  const [plain] = at("read").options;
  plain.disabled = (languages[index()] ?? "en") !== "en";
  if (plain.disabled && state.read === plain.value) remember({ read: "expression" }, false);
  at("read").value = state.read;
}

function showOperators() {
  at("operators-box").open ||= state.compare !== "" || Object.keys(state).some((name) => name.startsWith("a.") && state[name]);
  const sides = state.compare ? [["a", "left"], ["b", "right"]] : [["a", "for all three words"]];
  at("operators").replaceChildren(...sides.map(([side, title]) =>
    operatorControls(side, title, names, state, (name, value) => change({ [name]: value }, false))));
}

async function search() {
  running?.abort();
  const { signal } = (running = new AbortController());
  at("error").replaceChildren();
  at("key").hidden = true;
  document.title = state.query ? `${state.query} – Search` : "Search";
  const isEmpty = state.query.trim() === "";
  at("empty").hidden = !isEmpty;
  if (isEmpty) clear();
  at("results").setAttribute("aria-busy", "true");
  const patience = setTimeout(() => isEmpty || wait(), PATIENCE);
  try {
    await (loaded ??= load());
    showFilter();
    showReadings();
    if (isEmpty || signal.aborted) return;
    const begun = performance.now();
    const [own, ...others] = facetRequests(fields[index()] ?? [], conditionsOf(state.filter));
    const sides = [page("a", signal, own), ...(state.compare ? [page("b", signal)] : [])];
    const counts = others.map((one) => page("a", signal, { explain: false, highlight: false, ...one }));
    const answers = await Promise.all([...sides, ...counts]);
    shown = answers.slice(0, sides.length);
    facets = Object.assign({}, ...answers.map((answer) => answer.facets));
    clearTimeout(patience);
    showAnswers();
    at("status").textContent += ` in ${Math.round(performance.now() - begun)} ms`;
    await Promise.all([reading(signal), difference(signal), program(signal)]);
  } catch (error) {
    if (!names) loaded = null;
    if (error.name !== "AbortError") fail(error, search);
  } finally {
    clearTimeout(patience);
    if (!signal.aborted) at("results").setAttribute("aria-busy", "false");
  }
}

/** A page of the ranking of one side; `more` has the parameters that only this page has. */
function page(side, signal, more = {}) {
  const wanted = { hits: state.hits, explain: true, highlight: true, max_doc_length: MOST_TEXT };
  return get(`/v1/${encodeURIComponent(index())}/search`, { ...parametersOf(state, side), ...wanted, ...more }, signal);
}

/** Adds the next page to the hits, of each side that has one. */
async function more() {
  const { signal } = running;
  const first = shown[0].candidates.length;
  at("more").disabled = true;
  at("error").replaceChildren();
  try {
    const next = await Promise.all(shown.map((answer, i) => answer.cursor ? page("ab"[i], signal, { cursor: answer.cursor }) : null));
    shown = shown.map((answer, i) => (next[i] ? { ...next[i], candidates: [...answer.candidates, ...next[i].candidates] } : answer));
    showAnswers();
    at("results").querySelectorAll("section:first-child h3")[first]?.focus();
  } catch (error) {
    if (error.name !== "AbortError") at("error").replaceChildren(element("pre", {}, error.message));
  } finally {
    at("more").disabled = false;
  }
}

function clear() {
  shown = [];
  at("more").hidden = at("facets").hidden = true;
  at("results").setAttribute("aria-busy", "false");
  at("results").replaceChildren();
  at("status").textContent = "";
  for (const id of ["reading", "difference", "program"]) at(id).hidden = true;
}

function wait() {
  at("status").textContent = "Searching";
  if (!at("results").children.length) at("results").append(...[1, 2, 3].map(() => element("div", { class: "skeleton" })));
}

function fail(error, again) {
  clear();
  at("key").hidden = error.status !== 401;
  at("error").replaceChildren(
    element("pre", {}, error.message),
    error.status === 400 ? "" : element("button", { type: "button", onclick: again }, "Try again"));
}

function showAnswers() {
  const answers = shown;
  at("operators-used").textContent = answers.length > 1 ? "Operators" : `Operators: ${settings(answers[0])}`;
  const ranks = new Map(answers[0].candidates.map((one) => [one.docid, one.rank]));
  const chosen = [state.first, state.second];
  at("results").className = answers.length > 1 ? "results two" : "results";
  at("results").replaceChildren(...answers.map((answer, i) => element("section", { "aria-label": answers.length > 1 ? ["left", "right"][i] : "Hits" },
    answers.length > 1 ? element("h2", {}, settings(answer)) : element("h2", { class: "hidden" }, "Hits"),
    ...(answer.notes ?? []).map((note) => element("p", { class: "quiet" }, `Note: ${note}`)),
    answer.candidates.length ? rankingList(answer, { before: i ? ranks : null, isOpen: answers.length === 1, chosen, choose }) : element("p", {}, "No document matches."))));
  at("status").textContent = answers.map(counted).join(" and ");
  at("more").hidden = !answers.some((answer) => answer.hasMore);
  showFacets(at("facets"), facets, conditionsOf(state.filter), toggle);
}

/** How many hits there are, of how many documents that match. */
function counted({ candidates, total }) {
  const shown = `${candidates.length} ${candidates.length === 1 ? "hit" : "hits"}`;
  if (total.relation === "eq" && total.value === candidates.length) return shown;
  return `${shown} of ${total.relation === "gte" ? "at least " : ""}${total.value.toLocaleString("en")}`;
}

function settings({ query: { operators } }) {
  return operators ? `${operators.union} · ${operators.intersection} · ${operators.difference} ${operators.difference_weight ?? ""}` : "";
}

/** Adds a condition to the filter, or takes it away. */
function toggle(condition) {
  const others = conditionsOf(state.filter);
  const chosen = others.includes(condition) ? others.filter((one) => one !== condition) : [...others, condition];
  at("filter").value = chosen.join(", ");
  change({ filter: at("filter").value, first: "", second: "" });
}

/** Chooses one of two hits to compare; a third takes the place of the second. */
function choose(docid, isChosen) {
  const others = [state.first, state.second].filter((one) => one && one !== docid);
  const [first = "", second = ""] = isChosen ? [...others.slice(0, 1), docid] : others;
  compare(first, second);
}

/** Compares two hits, or none. The ranking stays. */
function compare(first, second) {
  remember({ first, second }, false);
  for (const box of at("results").querySelectorAll(".docid input")) box.checked = [first, second].includes(box.value);
  difference(running.signal).catch((error) => error.name === "AbortError" || fail(error, search));
}

async function reading(signal) {
  if (state.read !== "model") {
    at("reading").hidden = true;
    return;
  }
  const parameters = { query: state.query, ...(state.tags ? { tags: state.tags } : {}) };
  const answer = await get("/v1/decompose", parameters, signal);
  showReading(at("reading"), answer, (tags) => change({ tags: tags.join(",") }), edit);
}

function edit(expression) {
  at("query").value = expression;
  at("read").value = "expression";
  at("query").focus();
  change({ query: expression, read: "expression", tags: "" });
}

async function difference(signal) {
  const section = at("difference");
  if (!state.first || !state.second) {
    section.hidden = true;
    return;
  }
  const path = `/v1/${encodeURIComponent(index())}/explain`; // the id is no part of it, for it may be "."
  const explanations = await Promise.all([state.first, state.second].map((docid) => get(path, { ...parametersOf(state, "a"), docid }, signal)));
  const close = element("button", { type: "button", onclick: () => compare("", "") }, "Close");
  section.replaceChildren(...differenceTable(explanations), close);
  section.hidden = false;
  section.scrollIntoView({ block: "nearest" });
}

async function program(signal) {
  const parameters = parametersOf(state, "a");
  const { composed } = await get(`/v1/${encodeURIComponent(index())}/compose`, parameters, signal).catch((error) => {
    if (error.status === 400) return { composed: null }; // nothing is left of the query
    throw error;
  });
  at("program").hidden = composed === null;
  if (composed) showLines(at("program-body"), programLines(index(), parameters, state.hits, composed));
}

function ask() {
  const query = at("query").value;
  change({ query, filter: at("filter").value, first: "", second: "", tags: query === state.query ? state.tags : "" });
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
at("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
for (const name of ["read", "index", "hits", "filter"]) {
  at(name).addEventListener("change", (event) => change({ query: at("query").value, [name]: event.target.value, first: "", second: "" }));
}
at("more").addEventListener("click", more);
at("facets").open = matchMedia("(min-width: 45rem)").matches;
at("compare").addEventListener("change", (event) => {
  state.compare = event.target.checked ? "1" : "";
  if (names) showOperators();
  change({});
});
at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(at("key-input").value);
  search();
});
addEventListener("popstate", () => {
  state = stateOf(location.href);
  showState();
  search();
});

showState();
search();
