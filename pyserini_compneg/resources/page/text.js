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

/**
 * A text with a sign for each UTF-16 unit: above 0 where it counts for its document, below 0 where against it. The places
 * of highlights are code points; `first` is the one with which the text begins.
 */
function marked(text, highlights, first = 0) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  const signs = new Float64Array(text.length); // highlights may overlap
  for (const { start, end, amount } of highlights) {
    const [from, to] = [start - first, end - first].map((place) => units[Math.min(Math.max(place, 0), units.length - 1)]);
    for (let i = from; i < to; i++) signs[i] += amount;
  }
  return { text: plain(text), signs: signs.map(Math.sign) };
}

function part({ text, signs }, start, end = text.length) {
  return { text: text.slice(start, end), signs: signs.slice(start, end) };
}

/** Title and text of a hit, or of its best passage, with the signs of their words. */
export function titleAndText({ doc, docid, highlights, passage }) {
  const nothing = marked("", []);
  if (doc === null || doc === undefined) return [marked(docid, []), nothing];
  if (typeof doc !== "object") return passage?.text === undefined ? firstLine(marked(String(doc), highlights), docid) : [marked(docid, []), passageOf(passage, highlights)];
  const name = ["contents", "text", "content", "body"].find((one) => (doc[one] ?? null) !== null);
  const of = (field) => highlights.filter((one) => one.field === `/${field}`);
  const title = doc.title ? marked(String(doc.title), of("title")) : null;
  if (passage?.text !== undefined) return [title ?? marked(docid, []), passageOf(passage, of(name))];
  const text = name ? marked(String(doc[name]), of(name)) : nothing;
  if (title) return [title, text.text.startsWith(`${title.text}\n`) ? part(text, title.text.length + 1) : text];
  return text.text ? firstLine(text, docid) : [marked(docid, []), marked(JSON.stringify(doc), [])];
}

function passageOf({ text, start }, highlights) {
  const lead = start ? "… " : "";
  return marked(lead + text, highlights, start - lead.length);
}

function firstLine(text, docid) {
  const end = text.text.indexOf("\n");
  return end >= 0 && end <= 200 ? [part(text, 0, end), part(text, end + 1)] : [marked(docid, []), text];
}

/** The text as strings and `mark`s. */
export function marks({ text, signs }) {
  const pieces = [];
  for (let start = 0, end; start < text.length; start = end) {
    for (end = start + 1; end < text.length && signs[end] === signs[start]; ) end++;
    const run = text.slice(start, end);
    pieces.push(signs[start] ? element("mark", { class: signs[start] > 0 ? "up" : "down" }, run) : run);
  }
  return pieces;
}

const LONGEST = 320; // UTF-16 units
const LEAD = 40;

/** The part of a text with the most words that count, these words marked. */
export function snippet(shown) {
  const { text, signs } = shown;
  const isStart = (i) => signs[i] && signs[i] !== signs[i - 1];
  const starts = [...signs.keys()].filter(isStart);
  let [best, most] = [0, -1];
  if (text.length > LONGEST) {
    for (const start of [0, ...starts.map((one) => edge(text, Math.max(one - LEAD, 0)))]) {
      const count = starts.filter((one) => one >= start && one < start + LONGEST).length;
      if (count > most) [best, most] = [start, count];
    }
  }
  const last = text.length <= best + LONGEST + LEAD ? text.length : edge(text, best + LONGEST);
  return element("p", { dir: "auto" }, best ? "… " : "", ...marks(part(shown, best, last)), last < text.length ? " …" : "");
}

/** The next word's beginning, or, in a text without blanks, the place itself, but never within a character. */
function edge(text, place) {
  if (!place) return 0;
  const blank = text.slice(place, place + LEAD).search(/\s/);
  if (blank >= 0) return place + blank + 1;
  return /[\udc00-\udfff]/.test(text[place] ?? "") ? place + 1 : place;
}
