// Years in plain words, such as "from the 1960s", as a range for a field of years or dates. What is not surely a range
// is no date: a condition that the words do not mean hides what they look for.

const POINT = "(?:the\\s+)?((?:1[5-9]|20)\\d(?:0['’]?s|\\d))";
const DECADE = "(?:the\\s+)?((?:1[5-9]|20)\\d0['’]?s)";
const first = (point) => Number(point.slice(0, 4));
const last = (point) => first(point) + (point.endsWith("s") ? 9 : 0);
const FORMS = [
  [`between\\s+${POINT}\\s+and\\s+${POINT}`, (one, other) => [first(one), last(other)]],
  [`from\\s+${POINT}\\s+(?:to|until|till|through)\\s+${POINT}`, (one, other) => [first(one), last(other)]],
  [`(?:(?:from|of|in)\\s+)?${POINT}\\s?[-–—]\\s?${POINT}`, (one, other) => [first(one), last(other)]],
  [`since\\s+${POINT}`, (point) => [first(point), ""]],
  [`(?:from\\s+)?after\\s+${POINT}`, (point) => [last(point) + 1, ""]],
  [`(?:from\\s+)?before\\s+${POINT}`, (point) => ["", first(point) - 1]],
  [`(?:until|till)\\s+${POINT}`, (point) => ["", last(point)]],
  [`(?:from|of|in)\\s+${POINT}`, (point) => [first(point), last(point)]],
  [DECADE, (point) => [first(point), last(point)]],
].map(([form, range]) => [new RegExp(`(?<![\\p{L}\\p{N}-])${form}(?![\\p{L}\\p{N}-])`, "iu"), range]);

/** All that may be a date, also in forms that are not read. */
const MENTION = /(?<!\d)(?:1[5-9]|20)\d\d(?!\d)|(?<![\p{L}\p{N}])\d0['’]?s\b|\b(?:twen|thir|for|fif|six|seven|eigh|nine)ties\b|\bcentur(?:y|ies)\b/giu;

/** Words right before a date that make it a topic, less than the whole range, or another range. */
const OTHER_BEFORE = new RegExp("(?<![\\p{L}\\p{N}])(?:set|place|about|during|on|early|earlier|mid|middle|late|later|pre|post|circa|around|near|by|to|" +
  "through|than|past|not|no|never|and|or|nor|before|after|since|until|till|between|prior|end|beginning|start|turn|half|part|rest|" +
  "long|short|shortly|just|right|soon|well|immediately|begun|began|held|built|fought|won|lost|lived?|living|life|world|" +
  "(?:day|week|month|year|decade|war|battle|riot|event|election|protest|revolution|crash)s?|spring|summer|autumn|fall|winter)" +
  "(?:[\\s-]+(?:in|the|of|from))*[\\s-]*$", "iu");
const PERSON = /\b(?:born|died|killed)\b/i;
const TOPIC = /\b(?:set|places?|about)\b/i;
const OF_PUBLISHING = /^(?:released|published|produced|filmed|issued|printed|recorded|dated|created|directed|debuted|premiered|animated|remastered)$/i;

/** Words right after a date that move its end, or make it a number. */
const OTHER_AFTER = /^\s*(?:[-–—/+]|(?:to|until|till|through|on|onwards?|up|upwards?|so|bc|bce|years?|days?|hours?|miles?|met(?:er|re)s?|words?|pages?|people)\b|(?:and|or)\s+(?:on|so|up|later|earlier|before|after|since|until|newer|older|beyond|onwards?|the\s+(?:years?|decades?))\b)/i;

function isRead(found, before, after) {
  if (OTHER_BEFORE.test(before) || PERSON.test(before) || OTHER_AFTER.test(after)) return false;
  const [leading] = found.match(/^\p{L}*/u);
  const [word] = before.match(/\p{L}*(?=\s*$)/u);
  if (!leading || leading.toLowerCase() === "the") return true;
  if (/ed$/i.test(word) && !OF_PUBLISHING.test(word)) return false;
  if (/^of$/i.test(leading)) return /s$/i.test(word); // films of 1969, but the summit of 1969
  return /^from$/i.test(leading) || !TOPIC.test(before);
}

/** The date in a text: its places in code points, as in the API, and the range of years; or null. */
export function dateIn(text) {
  const mentions = text.match(MENTION) ?? [];
  for (const [form, range] of FORMS) {
    const found = text.match(form);
    if (!found) continue;
    const [before, after] = [text.slice(0, found.index), text.slice(found.index + found[0].length)];
    const [from, to] = range(...found.slice(1));
    const isAll = form === FORMS.at(-1)[0] // "1950s war films that are also 1950s comedies" are of one decade
      ? mentions.every((one) => found[0].includes(one))
      : mentions.length === found[0].match(MENTION).length;
    if (!isAll || (from && to && from > to) || !isRead(found[0], before, after)) return null;
    const start = [...before].length;
    return { start, end: start + [...found[0]].length, range: `${from}..${to}` };
  }
  return null;
}

const NAME = /year|date|released|published/i;
const MOST = 0.8;

/** Fields with the names of dates go first. */
export function datesFirst(fields) {
  return [...fields.filter((field) => NAME.test(field)), ...fields.filter((field) => !NAME.test(field))];
}

/** The year of a date, or of a number that is one. */
const yearOf = (value) => String(value).slice(0, 4);

/** The first field of which nearly all counted values are years or dates, or null. */
export function dateField(facets) {
  const isDate = ({ value }) => /^\d{4}(-\d\d.*)?$/.test(value) && yearOf(value) >= 1500 && yearOf(value) <= 2100;
  return datesFirst(Object.keys(facets)).find((field) => facets[field].length && facets[field].filter(isDate).length >= MOST * facets[field].length) ?? null;
}
