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

/** A value under a name that comes from data; no name of JavaScript's own has a value. */
export function own(values, name) {
  return values !== null && typeof values === "object" && Object.hasOwn(values, name) ? values[name] : undefined;
}

/** The text with a visible sign in place of characters that steer a terminal or turn the direction of a line. */
export function plain(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/**
 * A text with an amount for each UTF-16 unit: above 0 where it counts for its document, below 0 where against it or where
 * it is excluded. The places of highlights are code points; `first` is the one with which the text begins.
 */
function marked(text, { highlights = [], excluded = [] } = {}, first = 0) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  const amounts = new Float64Array(text.length);
  const each = ({ start, end }, change) => {
    const [from, to] = [start - first, end - first].map((place) => units[Math.min(Math.max(place, 0), units.length - 1)]);
    for (let i = from; i < to; i++) amounts[i] = change(amounts[i]);
  };
  for (const one of highlights) each(one, (amount) => amount + one.amount); // they may overlap
  for (const one of excluded) each(one, (amount) => Math.min(amount, -1));
  return { text: plain(text), amounts };
}

function part({ text, amounts }, start, end = text.length) {
  return { text: text.slice(start, end), amounts: amounts.slice(start, end) };
}

export const LEAST = 0.05; // of the largest amount; less tells nothing, as "is" and "was" in a model

/** Title and text of a hit, or of its best passage, with the amounts of their words. */
export function titleAndText({ doc, docid, highlights = [], excluded = [], passage }) {
  const nothing = marked("");
  if (doc === null || doc === undefined) return [marked(docid), nothing];
  const largest = highlights.reduce((most, one) => Math.max(most, Math.abs(one.amount)), 0); // there may be too many for arguments
  const every = { highlights: highlights.filter((one) => Math.abs(one.amount) >= LEAST * largest), excluded };
  if (typeof doc !== "object") return passage?.text === undefined ? firstLine(marked(String(doc), every), docid) : [marked(docid), passageOf(passage, every)];
  const name = ["contents", "text", "content", "body"].find((one) => (doc[one] ?? null) !== null);
  const of = (field) => Object.fromEntries(Object.entries(every).map(([kind, places]) => [kind, places.filter((one) => one.field === `/${field}`)]));
  const title = doc.title ? marked(String(doc.title), of("title")) : null;
  if (passage?.text !== undefined) return [title ?? marked(docid), passageOf(passage, of(name))];
  const text = name ? marked(String(doc[name]), of(name)) : nothing;
  if (title) return [title, text.text.startsWith(`${title.text}\n`) ? part(text, title.text.length + 1) : text];
  return text.text ? firstLine(text, docid) : [marked(docid), marked(JSON.stringify(doc))];
}

function passageOf({ text, start }, places) {
  const lead = start ? "… " : "";
  return marked(lead + text, places, start - lead.length);
}

function firstLine(text, docid) {
  const end = text.text.indexOf("\n");
  return end >= 0 && end <= 200 ? [part(text, 0, end), part(text, end + 1)] : [marked(docid), text];
}

/** The words of the stored document at some places, in lower case, each once; places behind a cut are left out. */
export function wordsAt({ doc }, places) {
  const text = (field) => (field === "" || typeof doc !== "object" ? doc : field.slice(1).split("/").reduce((value, key) => own(value, key.replaceAll("~1", "/").replaceAll("~0", "~")), doc));
  const words = places.map(({ field, start, end }) => [...String(text(field) ?? "").slice(0, 2 * end)].slice(start, end).join("").toLowerCase());
  return [...new Set(words.filter(Boolean))];
}

/** The text as strings and `mark`s. */
export function marks({ text, amounts }) {
  const pieces = [];
  for (let start = 0, end; start < text.length; start = end) {
    const sign = Math.sign(amounts[start]);
    for (end = start + 1; end < text.length && Math.sign(amounts[end]) === sign; ) end++;
    const run = text.slice(start, end);
    pieces.push(sign ? element("mark", { class: sign > 0 ? "up" : "down" }, run) : run);
  }
  return pieces;
}

const LONGEST = 160; // UTF-16 units
const LEAD = 30;

/** The part of a text whose words count most for a hit, and the first word against it. */
export function snippet(shown) {
  const { text, amounts } = shown;
  const starts = [...amounts.keys()].filter((i) => amounts[i] && Math.sign(amounts[i]) !== Math.sign(amounts[i - 1]));
  const against = starts.find((i) => amounts[i] < 0);
  let cuts = [[0, text.length]];
  if (text.length > LONGEST + LEAD) {
    let best = window(shown, starts, LONGEST);
    if (against !== undefined && (against < best || against >= best + LONGEST)) {
      best = window(shown, starts, LONGEST / 2);
      cuts = [[best, LONGEST / 2], [edge(text, Math.max(against - LEAD, 0)), LONGEST / 2]].sort((a, b) => a[0] - b[0]);
    } else cuts = [[best, LONGEST]];
  }
  const pieces = [];
  let last = 0;
  for (const [from, length] of cuts) {
    const start = Math.max(from, last);
    if (start > last || (start && !last)) pieces.push(last ? " … " : "… ");
    last = text.length <= start + length + LEAD ? text.length : edge(text, start + length);
    pieces.push(...marks(part(shown, start, last)));
  }
  return element("p", { class: "snippet", dir: "auto" }, ...pieces, last < text.length ? " …" : "");
}

/** The beginning of the part with the largest amounts; a word counts once. */
function window({ text, amounts }, starts, length) {
  const word = (i) => text.slice(i).match(/^[\p{L}\p{N}]*/u)[0].toLowerCase();
  const found = starts.filter((i) => amounts[i] > 0).map((i) => [i, word(i)]);
  let [best, most] = [0, -1];
  for (const start of [0, ...found.map(([i]) => edge(text, Math.max(i - LEAD, 0)))]) {
    const inside = found.filter(([i]) => i >= start && i < start + length);
    const sum = [...new Map(inside.map(([i, name]) => [name, amounts[i]])).values()].reduce((total, one) => total + one, 0);
    if (sum > most) [best, most] = [start, sum];
  }
  return best;
}

/** The next word's beginning, or, in a text without blanks, the place itself, but never within a character. */
function edge(text, place) {
  if (!place) return 0;
  const blank = text.slice(place, place + LEAD).search(/\s/);
  if (blank >= 0) return place + blank + 1;
  return /[\udc00-\udfff]/.test(text[place] ?? "") ? place + 1 : place;
}
