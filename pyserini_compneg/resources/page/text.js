// Texts of documents: always shown as text, never read as HTML.

/** Makes an element. Strings become text; attributes that are null are left out. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** The text with a visible sign in place of characters that steer a terminal or turn the direction of a line. */
export function plain(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** Title and text of what the server gives as a document. */
export function titleAndText(doc, docid) {
  if (doc === null || doc === undefined) return [docid, ""];
  if (typeof doc !== "object") return firstLine(String(doc), docid);
  const text = doc.contents ?? doc.text ?? doc.content ?? doc.body ?? "";
  if (doc.title) return [plain(String(doc.title)), plain(withoutTitle(String(text), String(doc.title)))];
  return text ? firstLine(String(text), docid) : [docid, plain(JSON.stringify(doc))];
}

function withoutTitle(text, title) {
  return text.startsWith(`${title}\n`) ? text.slice(title.length + 1) : text;
}

function firstLine(text, docid) {
  const [line, ...rest] = text.split("\n");
  return rest.length && line.length <= 200 ? [plain(line), plain(rest.join(" "))] : [docid, plain(text)];
}

const WORD = /[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*/gu;
const LONGEST = 45; // words

/** What each single term adds, its pairs included. */
export function amounts(contributions) {
  const sums = new Map();
  for (const { term, amount } of contributions) {
    for (const single of term.split("∩")) sums.set(single, (sums.get(single) ?? 0) + amount);
  }
  return sums;
}

/** The part of a text with the most words that count, these words marked. */
export function snippet(text, words, sums) {
  const found = [...text.matchAll(WORD)];
  const signs = found.map((match) => {
    const word = match[0].toLowerCase();
    const terms = Object.hasOwn(words, word) ? words[word] : []; // "constructor" is a word, too
    return Math.sign(terms.reduce((sum, term) => sum + (sums.get(term) ?? 0), 0));
  });
  let best = 0, most = -1;
  for (let first = 0; first === 0 || first + LONGEST <= found.length; first += 5) {
    const count = signs.slice(first, first + LONGEST).filter(Boolean).length;
    if (count > most) [best, most] = [first, count];
  }
  const last = Math.min(best + LONGEST, found.length);
  const pieces = best > 0 ? ["… "] : [];
  let place = best > 0 ? found[best].index : 0;
  for (let i = best; i < last; i++) {
    if (!signs[i]) continue;
    pieces.push(text.slice(place, found[i].index));
    pieces.push(element("mark", { class: signs[i] > 0 ? "up" : "down" }, found[i][0]));
    place = found[i].index + found[i][0].length;
  }
  pieces.push(last < found.length ? `${text.slice(place, found[last].index)}…` : text.slice(place, place + 1000));
  return element("p", { dir: "auto" }, ...pieces);
}
