// Hits, with what each term adds to their scores or takes from them.

import { element, marks, plain, snippet, titleAndText } from "./text.js";

const TERMS = 6;
const OPERANDS = 3;

/** A ranking as a list. `before` has the ranks of the ranking that it is compared with, or is null. */
export function rankingList(answer, { before, isOpen, chosen, choose }) {
  const unit = answer.query.unit;
  const shown = answer.candidates.map(({ contributions }) => telling(contributions));
  const largest = Math.max(...shown.flat().map((part) => Math.abs(part.amount)), 0);
  return element("ol", {}, ...answer.candidates.map((candidate, i) =>
    hit(candidate, shown[i], { unit, largest, before, isOpen, isChosen: chosen.includes(candidate.docid), choose })));
}

/** The largest contributions; the worst of those that lower the score is always among them. */
function telling(contributions) {
  const largest = contributions.slice(0, TERMS);
  const worst = contributions.find((part) => part.amount < 0);
  return worst && !largest.includes(worst) ? [...largest.slice(0, -1), worst] : largest;
}

function hit(candidate, parts, { unit, largest, before, isOpen, isChosen, choose }) {
  const [title, text] = titleAndText(candidate);
  const rest = candidate.contributions.length - parts.length;
  return element("li", { class: "hit" },
    element("header", {},
      element("span", { class: "rank" }, `${candidate.rank}`),
      element("h3", { dir: "auto", tabindex: "-1" }, ...marks(title)),
      candidate.passage ? element("span", { class: "passage quiet" }, `passage ${candidate.passage.number}`) : null,
      candidate.lacks ? lacks(candidate.lacks) : null,
      before && moved(candidate, before),
      element("span", { class: "score", title: "score, in the unit of the encoder" }, number(candidate.score / unit))),
    text.text ? snippet(text) : null,
    element("details", { open: isOpen },
      element("summary", {}, "Why it stands here"),
      bars(parts, unit, largest),
      rest ? element("p", { class: "quiet" }, `and ${rest} smaller ones`) : null),
    element("label", { class: "docid" },
      element("input", { type: "checkbox", value: candidate.docid, checked: isChosen, onchange: (event) => choose(candidate.docid, event.target.checked) }),
      " compare ", element("bdi", {}, plain(candidate.docid))));
}

/** The first operands that a document lacks. */
function lacks(operands) {
  const more = operands.length > OPERANDS ? ` and ${operands.length - OPERANDS} more` : "";
  return element("span", { class: "lacks quiet" }, "lacks ", element("bdi", {}, plain(operands.slice(0, OPERANDS).join(", ")) + more));
}

function moved(candidate, before) {
  const rank = before.get(candidate.docid);
  if (rank === undefined) return element("span", { class: "moved up" }, "new");
  const change = rank - candidate.rank;
  if (!change) return element("span", { class: "quiet" }, "=");
  return element("span", { class: `moved ${change > 0 ? "up" : "down"}` }, `${change > 0 ? "▲" : "▼"} ${Math.abs(change)}`);
}

function bars(parts, unit, largest) {
  return element("table", {},
    element("caption", { class: "hidden" }, "What each term adds"),
    element("tbody", {}, ...parts.map(({ term, amount }) => element("tr", {},
      element("th", { scope: "row", dir: "auto" }, plain(term)),
      element("td", { class: "number" }, signed(amount / unit)),
      element("td", { class: "track", "aria-hidden": "true" }, bar(amount / largest))))));
}

function bar(share) {
  const filled = element("i", { class: share < 0 ? "down" : "up" });
  filled.style.width = `${50 * Math.abs(share)}%`;
  return element("span", { class: "bar" }, filled);
}

const MOST_DIFFERENCES = 12;

/** What two documents differ in: their contributions, the largest differences first. */
export function differenceTable(explanations) {
  const [a, b] = explanations.map((one) => one.documents[0]);
  const unit = explanations[0].unit;
  const [ofA, ofB] = [a, b].map((one) => new Map(one.contributions.map((part) => [part.term, part.amount / unit])));
  const rows = [...new Set([...ofA.keys(), ...ofB.keys()])].map((term) => [term, ofA.get(term) ?? 0, ofB.get(term) ?? 0]);
  rows.sort((one, other) => Math.abs(other[1] - other[2]) - Math.abs(one[1] - one[2]));
  const rest = rows.splice(MOST_DIFFERENCES);
  if (rest.length) rows.push([`${rest.length} others`, sum(rest, 1), sum(rest, 2)]);
  const largest = Math.max(...rows.map((row) => Math.abs(row[1] - row[2])), Number.MIN_VALUE);
  const cells = rows.map(([term, x, y]) => element("tr", {},
    element("th", { scope: "row", dir: "auto" }, plain(term)), ...[x, y].map((value) => element("td", { class: "number" }, number(value))),
    element("td", { class: "number" }, signed(x - y)), element("td", { class: "track", "aria-hidden": "true" }, bar((x - y) / largest))));
  const total = element("tr", {}, element("th", { scope: "row" }, "score"),
    ...[a.score / unit, b.score / unit].map((value) => element("td", { class: "number" }, number(value))),
    element("td", { class: "number" }, signed((a.score - b.score) / unit)), element("td", {}));
  const names = [a, b].map((one, i) => element("p", {}, `${"AB"[i]}  `, element("bdi", {}, plain(one.title ?? one.docid)), one.rank ? `, rank ${one.rank}` : ""));
  return [element("h2", {}, "What the two hits differ in"), ...names,
    element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "term"),
        ...["A", "B", "A − B"].map((name) => element("th", { scope: "col", class: "number" }, name)), element("td"))),
      element("tbody", {}, ...cells, total))];
}

function sum(rows, column) {
  return rows.reduce((total, row) => total + row[column], 0);
}

function number(value) {
  return value.toFixed(2);
}

function signed(value) {
  const digits = Math.abs(value).toFixed(2);
  return digits === "0.00" ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}
