// How plain words are read: what the page asks for, and the words themselves, whose roles a click changes.

import { get } from "./api.js";
import { conditionsOf, fieldOf } from "./state.js";
import { element, plain } from "./text.js";
import { dateField, dateIn, datesFirst } from "./years.js";

const ROLES = { W: "wanted", X: "excluded", S: "shared", OR: "or", AND: "and", O: "not used" };
const ORDER = Object.keys(ROLES);
const FIELDS = 5;
const FIRST_PAGE = 10;
const CLASS = 0.8;

/**
 * What a state asks for: tags, conditions and strictness, and for plain words their reading. A date in the words becomes a
 * condition if the index has a field of dates. An exclusion is strict if the page is told so, or if the words are
 * understood and exclude classes: a document about comedies is none that is wanted, a page that names a person may be.
 */
export async function read(state, index, fields, signal) {
  const own = conditionsOf(state.filter);
  if (state.read !== "model") {
    const excludes = state.read === "expression" && /(^|[\s)])NOT\s/.test(state.query);
    return { tags: "", conditions: own, excludes, strict: excludes && state.strict === "1" };
  }
  const reading = await get("/v1/decompose", { query: state.query, ...(state.tags ? { tags: state.tags } : {}) }, signal);
  const excluded = reading.parts.filter((part) => part.excluded).map((part) => part.text);
  const date = state.years ? null : dateOf(reading);
  const field = date && await fieldOfDates(state, index, fields, signal);
  const known = field ? { ...date, field, condition: `${field}=${date.range}` } : null;
  const isFree = known && !own.some((one) => fieldOf(one) === field); // what is chosen there goes before the words
  const strict = excluded.length > 0 && (state.strict ? state.strict === "1" : reading.understood && await areClasses(excluded, index, signal));
  return {
    reading, date: known, undated: field === null ? date : null, excludes: excluded.length > 0, strict,
    tags: known ? without(reading, date).join(",") : state.tags,
    conditions: isFree ? [...own, known.condition] : own,
  };
}

/** The date among the wanted words. */
function dateOf(reading) {
  const date = dateIn(reading.text);
  return date && within(reading, date).every(({ tag }) => "WSO".includes(tag) || tag === "AND") ? date : null;
}

function within({ words }, { start, end }) {
  return words.filter(({ span }) => span[0] < end && start < span[1]);
}

/** The tags without those of a date, unless nothing else is wanted. */
function without(reading, date) {
  const dated = within(reading, date);
  const tags = reading.words.map((word) => (dated.includes(word) ? "O" : word.tag));
  return tags.includes("W") ? tags : reading.words.map((word) => word.tag);
}

/** The field of dates among the documents with any word of the query; undefined if there are none. */
async function fieldOfDates(state, index, fields, signal) {
  if (!fields.length) return null;
  const facets = datesFirst(fields).slice(0, FIELDS).map((name) => `${name}:20`).join(",");
  const counted = await get(`/v1/${encodeURIComponent(index)}/search`, { query: state.query, read: "plain", hits: 0, facets }, signal);
  return counted.total.value ? dateField(counted.facets) : undefined;
}

/** Whether many documents are about each text: the tenth best has nearly the score of the best. */
async function areClasses(texts, index, signal) {
  const asked = texts.map((query) => get(`/v1/${encodeURIComponent(index)}/search`, { query, read: "plain", hits: FIRST_PAGE, max_doc_length: 1 }, signal));
  const scores = (await Promise.all(asked)).map((answer) => answer.candidates.map((one) => one.score));
  return scores.every((found) => found.length === FIRST_PAGE && found.at(-1) >= CLASS * found[0]);
}

/** Shows a reading; `change` gets the tags after a click, `edit` the expression that is to be edited. */
export function showReading(section, { reading, date, undated }, expression, change, edit) {
  const focused = document.activeElement?.dataset?.place;
  const isOpen = section.querySelector("details")?.open ?? false;
  const tags = reading.words.map((word) => word.tag);
  const dated = date ? within(reading, date) : [];
  const characters = [...reading.text]; // spans count characters as Python does
  const pieces = [];
  let place = 0;
  reading.words.forEach((one, i) => {
    const [start, end] = one.span;
    pieces.push(characters.slice(place, start).join(""));
    const word = characters.slice(start, end).join("");
    const role = dated.includes(one) ? "date" : ROLES[one.tag];
    pieces.push(/[\p{L}\p{N}]/u.test(word) ? chip(word, one.tag, role, i, () => change(next(tags, i))) : word);
    place = end;
  });
  pieces.push(characters.slice(place).join(""));
  const parts = [
    element("details", { open: isOpen },
      element("summary", {}, element("span", {}, "Looking for ", ...sentence(expression)), " ", element("span", { class: "act" }, "Change")),
      element("p", { class: "words" }, ...pieces),
      element("p", { class: "quiet" }, "Press a word to change its role: ", Object.values(ROLES).join(", "), "."),
      element("button", { type: "button", onclick: edit }, "Edit as an expression")),
    reading.understood ? null : element("p", { class: "doubt" }, `This may be misread: ${plain(reading.doubts.join("; "))}`),
    undated ? element("p", { class: "quiet" }, `This index has no field of years: “${plain(characters.slice(undated.start, undated.end).join(""))}” is searched as words.`) : null,
  ];
  section.replaceChildren(...parts.filter(Boolean));
  section.hidden = false;
  section.querySelector(`[data-place="${focused}"]`)?.focus();
}

const JOINS = { union: " or ", intersection: " and ", strict_intersection: " and " };

/** A tree of the API in words. What is excluded is set off. */
function sentence(tree, isInner = false) {
  if (typeof tree === "string") return [element("b", {}, element("bdi", {}, plain(tree)))];
  const [[kind, parts]] = Object.entries(tree);
  if (kind === "filter") return [];
  const words = Object.hasOwn(JOINS, kind)
    ? parts.flatMap((part, i) => [i ? JOINS[kind] : "", ...sentence(part, true)])
    : [...sentence(parts[0]), ", without ", element("span", { class: "excluded" }, ...sentence(parts[1]))];
  return isInner ? ["(", ...words, ")"] : words;
}

function chip(word, tag, role, place, press) {
  return element("button", { type: "button", class: `word ${tag}`, "data-place": place, "aria-label": `${word}: ${role}. Change its role`, onclick: press },
    plain(word), element("small", { "aria-hidden": "true" }, role));
}

function next(tags, place) {
  return tags.with(place, ORDER[(ORDER.indexOf(tags[place]) + 1) % ORDER.length]);
}
