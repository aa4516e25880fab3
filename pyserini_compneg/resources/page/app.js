// The page: what is typed and chosen makes the state, the state makes requests, their answers are shown.

import { get, pathOf, useKey } from "./api.js";
import { facetRequests, isValue, showConditions, showFacets } from "./facets.js";
import { rankingList, wholeDocument } from "./hits.js";
import { operatorControls, operatorNames } from "./operators.js";
import { read, showReading } from "./reading.js";
import { conditionsOf, fieldOf, isExpression, parametersOf, stateOf, urlOf } from "./state.js";
import { element } from "./text.js";

const at = (id) => document.getElementById(id);
const MOST_TEXT = 3000;
const LAST_RANK = 10_000; // that a number of a page reaches; a cursor goes on behind it
const PATIENCE = 250; // ms before a skeleton is shown

let state = stateOf(location.href);
let indexes = [];
let fields = new Map(); // by index
let languages = new Map();
let names = null;
let loaded = null;
let running = null;
let shown = null; // the answer
let asked = null; // how the words of the state are read

/** Asks the server once what it has. */
async function load() {
  const health = await get("/health");
  names = await operatorNames();
  indexes = Object.keys(health.indexes);
  [fields, languages] = [health.filter_fields, health.languages].map((one) => new Map(Object.entries(one)));
  at("index").replaceChildren(...indexes.map((name) => element("option", {}, name)));
  at("index-label").hidden = indexes.length < 2;
  const typed = at("query").value; // since the page was opened
  showState();
  at("query").value = typed;
}

/** The index that is searched; an unknown one is left to the server to refuse. */
function index() {
  return state.index || indexes[0];
}

function fieldsOfIndex() {
  return fields.get(index()) ?? [];
}

/** Changes the state. A search is a new entry of the history; its page has the cursor with which it was reached. */
function change(values, cursor = null) {
  state = { ...state, ...values };
  const url = urlOf(state);
  history[url === location.pathname + location.search ? "replaceState" : "pushState"]({ cursor }, "", url);
  show();
}

/** How a query is read: an expression as one, other words as what was chosen before. */
function readingOf(query) {
  if (isExpression(query)) return state.read === "model" ? "expression" : state.read;
  return isExpression(state.query) && state.read === "expression" ? "model" : state.read;
}

/** Another query: the first page, and nothing that belongs to the words before. */
function ask() {
  if (matchMedia("(pointer: coarse)").matches) at("query").blur(); // its keyboard would hide the results
  const query = at("query").value;
  const other = query === state.query ? {} : { read: readingOf(query), tags: "", years: "" };
  change({ query, page: "1", doc: "", ...other });
  if (!query.trim()) at("error").replaceChildren(element("p", {}, "Type what you look for."));
}

function showState() {
  for (const name of ["query", "read", "hits"]) at(name).value = state[name];
  if (!names) return;
  at("index").value = index();
  at("operators").replaceChildren(...operatorControls(names, state, change));
  const [known = ""] = fieldsOfIndex();
  at("filter").placeholder = known.length > 0 && known.length < 12 ? `${known}=…` : "field=value";
  const [words] = at("read").options; // the model reads English
  words.disabled = (languages.get(index()) ?? "en") !== "en";
  if (words.disabled && state.read === words.value) state.read = at("read").value = "expression";
}

/** Shows the state: the page to begin with, a document, or a search. */
async function show() {
  running?.abort();
  const { signal } = (running = new AbortController());
  showState();
  at("error").replaceChildren();
  at("key").hidden = true;
  const isEmpty = !state.query.trim();
  document.title = isEmpty ? "Search" : `${state.query} – Search`;
  at("empty").hidden = !isEmpty || state.doc !== "";
  at("document").hidden = true;
  at("results").setAttribute("aria-busy", "true");
  const patience = setTimeout(() => isEmpty || wait(), PATIENCE);
  try {
    await (loaded ??= load());
    if (signal.aborted) return;
    if (state.doc) await showDocument(signal);
    else if (isEmpty) clear();
    else await search(signal);
  } catch (error) {
    if (!names) loaded = null;
    if (error.status === 400 && history.state?.cursor) { // it is of the index before an update
      history.replaceState(null, "");
      show();
    } else if (error.name !== "AbortError") fail(error);
  } finally {
    clearTimeout(patience);
    if (!signal.aborted) at("results").setAttribute("aria-busy", "false");
  }
}

async function search(signal) {
  asked = null;
  if (!history.state?.cursor && state.page * state.hits > LAST_RANK) {
    throw Object.assign(new Error(`A link reaches the first ${LAST_RANK.toLocaleString("en")} hits. This page is behind them.`), { status: 400 });
  }
  asked = await read(state, index(), fieldsOfIndex(), signal);
  const parameters = parametersOf(state, asked);
  const path = `/v1/${encodeURIComponent(index())}/search`;
  const [own, ...others] = facetRequests(fieldsOfIndex(), asked.conditions);
  const place = history.state?.cursor ? { cursor: history.state.cursor } : { offset: (state.page - 1) * state.hits };
  const wanted = { hits: state.hits, explain: true, highlight: true, max_doc_length: MOST_TEXT, ...place };
  const answers = await Promise.all([wanted, ...others].map((more, i) => get(path, { ...parameters, ...more, ...(i ? {} : own) }, signal)));
  [shown] = answers;
  at("request").href = pathOf(path, { ...parameters, hits: state.hits });
  at("request").hidden = false;
  showAnswer(new Map(answers.flatMap((answer) => Object.entries(answer.facets ?? {}))));
}

function showAnswer(facets) {
  at("found").hidden = false;
  showChosen(asked);
  at("reading").hidden = !asked.reading;
  if (asked.reading) showReading(at("reading"), asked, shown.query.decomposition.tree, (tags) => change({ tags: tags.join(","), page: "1" }), edit);
  at("facets").hidden = !fieldsOfIndex().length && !state.filter;
  showFacets(at("values"), fieldsOfIndex(), facets, asked.conditions, toggle);
  at("status").textContent = counted(shown);
  showHits();
  showPages();
}

/** The strictness and the conditions of a search; also after an error, so that they can be taken back. */
function showChosen({ excludes, strict, conditions, date }) {
  at("strict-label").hidden = !excludes;
  at("strict").checked = strict;
  showConditions(at("conditions"), conditions, date?.condition, (condition) =>
    (condition === date?.condition && !conditionsOf(state.filter).includes(condition) ? change({ years: "words", page: "1" }) : toggle(condition)));
}

function showHits() {
  const none = shown.total.value
    ? element("p", {}, `The last of ${totalOf(shown)} hits is on a page before. `, pageLink("Page 1", 1))
    : element("p", {}, `No document matches. ${asked.conditions.length ? "Remove a condition, or use" : "Use"} other words.`);
  const options = { fields: fieldsOfIndex(), isDetailed: at("settings").open, linkOf: (doc) => urlOf({ ...state, doc }), open: openDocument };
  at("results").replaceChildren(...notesOf(shown).map((note) => element("p", { class: "quiet" }, `Note: ${note}`)),
    shown.candidates.length ? rankingList(shown, options) : none);
}

/** The notes of an answer, without the doubts of its reading, which stand beside the reading. */
function notesOf({ notes = [], query }) {
  const doubts = query.decomposition?.doubts.join("; ");
  return doubts ? notes.filter((note) => !note.includes(`(${doubts})`)) : notes;
}

/** Which hits are shown, of how many documents that match. */
function counted(answer) {
  return answer.candidates.length ? `${answer.candidates[0].rank} to ${answer.candidates.at(-1).rank} of ${totalOf(answer)}` : "";
}

function totalOf({ total }) {
  return `${total.relation === "gte" ? "at least " : ""}${total.value.toLocaleString("en")}`;
}

function showPages() {
  const page = Number(state.page);
  at("pages").hidden = page === 1 && !shown.hasMore;
  at("pages").replaceChildren(
    page > 1 ? pageLink("Previous page", page - 1) : element("span"),
    element("span", { class: "quiet" }, `Page ${page}`),
    shown.hasMore ? pageLink("Next page", page + 1, shown.cursor) : element("span"));
}

function pageLink(text, page, cursor = null) {
  return element("a", { href: urlOf({ ...state, page: `${page}` }), onclick: (event) => follow(event, () => {
    change({ page: `${page}` }, cursor);
    at("results").focus();
    scrollTo(0, 0);
  }) }, text);
}

/** Does the work of a link here, unless it shall open elsewhere. */
function follow(event, work) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  work();
}

function openDocument(event, docid) {
  follow(event, () => {
    change({ doc: docid }, history.state?.cursor);
    scrollTo(0, 0);
  });
}

async function showDocument(signal) {
  const answer = await get(`/v1/${encodeURIComponent(index())}/doc`, { docid: state.doc }, signal);
  const candidate = shown?.index === index() ? shown.candidates.find((one) => one.docid === state.doc) : undefined;
  const back = element("a", { href: urlOf({ ...state, doc: "" }), onclick: (event) => follow(event, () => change({ doc: "" }, history.state?.cursor)) },
    state.query ? "← Back to the results" : "← Search");
  clear();
  at("document").replaceChildren(...wholeDocument(answer, candidate, back));
  at("document").hidden = false;
  at("document").focus();
}

function clear() {
  for (const id of ["reading", "conditions", "found", "strict-label", "request"]) at(id).hidden = true;
}

function wait() {
  at("found").hidden = false;
  at("status").textContent = "Searching";
  at("pages").hidden = true;
  at("results").replaceChildren(...[1, 2, 3].map(() => element("div", { class: "skeleton" })));
}

function fail(error) {
  clear();
  at("key").hidden = error.status !== 401;
  if (error.status !== 401 && !state.doc) showChosen(asked ?? { excludes: state.strict !== "", strict: state.strict === "1", conditions: conditionsOf(state.filter) });
  at("error").replaceChildren(
    element("p", {}, error.status === 401 ? "This server wants a key." : error.message),
    error.status === 400 && state.page !== "1" ? pageLink("Page 1", 1) : "",
    [400, 401, 404].includes(error.status) ? "" : element("button", { type: "button", onclick: show }, "Try again"));
}

/** Adds a condition, or takes it away. A value goes before the range in which it is chosen. */
function toggle(condition) {
  const conditions = conditionsOf(state.filter);
  const others = conditions.filter((one) => one !== condition && (isValue(one) || fieldOf(one) !== fieldOf(condition)));
  const chosen = conditions.includes(condition) ? conditions.filter((one) => one !== condition) : [...others, condition];
  change({ filter: chosen.join(", "), page: "1" });
}

/** The conditions on ids and on fields of an index. */
function conditionsFor(name) {
  return conditionsOf(state.filter).filter((one) => ["id", ...fields.get(name) ?? []].includes(fieldOf(one))).join(", ");
}

function edit() {
  change({ query: shown.query.expression, read: "expression", tags: "", years: "", strict: "", page: "1", filter: asked.conditions.join(", ") });
  at("query").focus();
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
for (const name of ["read", "index", "hits"]) {
  at(name).addEventListener("change", ({ target }) => change({ query: at("query").value, [name]: target.value, page: "1", doc: "", tags: "", ...(name === "index" ? { filter: conditionsFor(target.value) } : {}) }));
}
at("strict").addEventListener("change", ({ target }) => change({ strict: target.checked ? "1" : "0", page: "1" }));
at("settings").addEventListener("toggle", () => shown && asked && showHits());
at("narrow").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = conditionsOf(at("filter").value).filter((one) => !asked.conditions.includes(one));
  at("filter").value = "";
  if (typed.length) change({ filter: [...conditionsOf(state.filter), ...typed].join(", "), page: "1" });
});
at("facets").open = matchMedia("(min-width: 60rem)").matches;
at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  if (useKey(at("key-input").value)) show();
  else at("error").replaceChildren(element("p", {}, "This key has a character that no key can have. Type the key again."));
});
addEventListener("popstate", () => {
  state = stateOf(location.href);
  show();
});

if (!state.query) at("query").focus();
show();
