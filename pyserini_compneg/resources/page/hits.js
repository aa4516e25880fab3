// Hits, and documents as a whole.

import { LEAST, element, marks, own, plain, snippet, titleAndText, wordsAt } from "./text.js";

const TERMS = 5;
const NAMES = 3;
const MODEL = "@";
const TEXTS = ["title", "contents", "text", "content", "body"];

/**
 * A ranking as a list. `fields` are shown below the title; `isDetailed` names terms of models and gives numbers; `linkOf`
 * gives the address of a document, and `open` gets its id.
 */
export function rankingList(answer, options) {
  return element("ol", {}, ...answer.candidates.map((candidate) => hit(candidate, answer, options)));
}

function hit(candidate, { query, concepts }, { fields, isDetailed, linkOf, open }) {
  const [title, text] = titleAndText(candidate);
  const about = [...fields.map((field) => values(own(candidate.doc, field))), candidate.passage ? `passage ${candidate.passage.number}` : ""].filter(Boolean);
  return element("li", { class: "hit", "data-docid": candidate.docid },
    element("h2", { dir: "auto" }, link(candidate, title, linkOf, open)),
    element("details", { class: "why" },
      element("summary", {}, about.length ? element("span", { class: "about", dir: "auto" }, plain(about.join(" · "))) : null,
        element("span", { class: "act" }, "Why", element("span", { class: "hidden" }, ` is ${title.text} here?`))),
      bars(contributions(candidate, query.text, concepts, isDetailed), query.unit, isDetailed)),
    candidate.excluded ? element("p", { class: "contains" }, "Has an excluded word: ", names(wordsAt(candidate, candidate.excluded))) : null,
    candidate.lacks ? element("p", { class: "lacks quiet" }, "Lacks ", names(candidate.lacks)) : null,
    text.text ? snippet(text) : null);
}

function link({ doc, docid }, title, linkOf, open) {
  const address = webAddress(doc?.url);
  const chosen = address ? { href: address, rel: "noreferrer" } : { href: linkOf(docid), onclick: (event) => open(event, docid) };
  return element("a", chosen, ...(title.text.trim() ? marks(title) : [plain(docid)]));
}

function webAddress(text) {
  return typeof text === "string" && /^https?:\/\//i.test(text) && URL.canParse(text) ? text : null;
}

function values(value) {
  return [value ?? []].flat().map(String).join(", ");
}

function names(words) {
  const more = words.length > NAMES ? ` and ${words.length - NAMES} more` : "";
  return element("bdi", {}, plain(words.slice(0, NAMES).join(", ") + more));
}

/** The largest contributions by the words of the document; the worst of those that lower the score is among them. */
function contributions(candidate, query, concepts, isDetailed) {
  const sums = new Map();
  for (const { term, amount } of candidate.contributions) {
    const parts = term.split("∩").map((single) => conceptOf(single, concepts) ?? (isDetailed && single.startsWith(MODEL) ? single : wordOf(single, candidate, query)));
    const shown = parts.some((one) => one.startsWith(MODEL)) && !isDetailed ? "related words" : parts.join(" + ");
    sums.set(shown, (sums.get(shown) ?? 0) + amount);
  }
  const all = [...sums].sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  const worst = all.find((one) => one[1] < 0);
  const largest = all.slice(0, TERMS).filter(([, amount]) => Math.abs(amount) >= LEAST * Math.abs(all[0][1]));
  const chosen = worst && !largest.includes(worst) ? [...largest.slice(0, TERMS - 1), worst] : largest;
  const rest = all.filter((one) => !chosen.includes(one)).reduce((total, one) => total + one[1], 0);
  return rest ? [...chosen, ["others", rest]] : chosen;
}

/** A latent by the words that light it most; undefined for other terms, and where the index does not name its latents. */
function conceptOf(term, concepts) {
  const name = own(concepts, term);
  return name && `concept: ${name}`;
}

/** The word of the document that a term stands for, or else that of the query, or the term. */
function wordOf(term, candidate, query) {
  const places = (candidate.highlights ?? []).filter((one) => one.terms.includes(term));
  const known = Object.entries(candidate.words ?? {}).find(([, terms]) => terms.includes(term));
  return wordsAt(candidate, places)[0] ?? known?.[0] ?? (term.startsWith(MODEL) ? term : asked(term, query));
}

function asked(term, query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.find((word) => word.startsWith(term)) ?? words.find((word) => word.length > 3 && word.slice(0, -2) === term.slice(0, word.length - 2)) ?? term;
}

function bars(parts, unit, isDetailed) {
  const all = parts.reduce((total, [, amount]) => total + Math.abs(amount), 0);
  const largest = Math.max(...parts.map(([, amount]) => Math.abs(amount)));
  const isSigned = parts.some(([, amount]) => amount < 0);
  return element("table", {},
    element("caption", {}, isDetailed ? "What each term adds to the score" : "What counts for this hit (+) and against it (−)"),
    element("tbody", {}, ...parts.map(([name, amount]) => element("tr", {},
      element("th", { scope: "row", dir: "auto" }, plain(name)),
      element("td", { class: "number" }, signed(isDetailed ? amount / unit : (100 * amount) / all, isDetailed ? 2 : 0) + (isDetailed ? "" : " %")),
      element("td", { class: "track", "aria-hidden": "true" }, bar(amount / largest, isSigned))))));
}

function bar(share, isSigned) {
  const filled = element("i", { class: share < 0 ? "down" : "up" });
  filled.style.width = `${(isSigned ? 50 : 100) * Math.abs(share)}%`;
  return element("span", { class: isSigned ? "bar signed" : "bar" }, filled);
}

function signed(value, digits) {
  const written = Math.abs(value).toFixed(digits);
  return Number(written) ? `${value < 0 ? "−" : "+"}${written}` : written;
}

/** A document as a whole, with the marks of its hit if there is one; `back` leads to the results. */
export function wholeDocument({ docid, doc }, candidate, back) {
  const [title, text] = titleAndText({ ...candidate, docid, doc, passage: undefined });
  const address = webAddress(doc?.url);
  const others = doc && typeof doc === "object" ? Object.entries(doc).filter(([name]) => !TEXTS.includes(name)) : [];
  return [
    back,
    element("h2", { dir: "auto" }, ...(title.text.trim() ? marks(title) : [plain(docid)])),
    element("p", { class: "text", dir: "auto" }, ...(doc === null ? ["This index stores no texts."] : marks(text))),
    element("dl", {}, element("dt", {}, "id"), element("dd", {}, element("bdi", {}, plain(docid))), ...others.flatMap(([name, value]) => [
      element("dt", {}, element("bdi", {}, plain(name))),
      element("dd", {}, name === "url" && address ? element("a", { href: address, rel: "noreferrer" }, plain(address)) : element("bdi", {}, plain(shownValue(value)))),
    ])),
  ];
}

function shownValue(value) {
  return [value].flat().every((one) => typeof one !== "object") ? values(value) : JSON.stringify(value);
}
