// Years in plain words, such as "from the 1960s", as a range for a field of years or dates.

const YEAR = "((?:1[5-9]|20)\\d\\d)";
const FORMS = [
  [`(?:(?:from|of|in)\\s+(?:the\\s+)?)?((?:1[5-9]|20)\\d)0['’]?s`, (decade) => [`${decade}0`, `${decade}9`]],
  [`(?:between|from)\\s+${YEAR}\\s+(?:and|to|until)\\s+${YEAR}`, (first, last) => [first, last]],
  [`(?:(?:from|of|in)\\s+)?${YEAR}\\s?[-–]\\s?${YEAR}`, (first, last) => [first, last]],
  [`since\\s+${YEAR}`, (year) => [year, ""]],
  [`after\\s+${YEAR}`, (year) => [`${Number(year) + 1}`, ""]],
  [`before\\s+${YEAR}`, (year) => ["", `${Number(year) - 1}`]],
  [`(?:from|of|in)\\s+${YEAR}`, (year) => [year, year]],
].map(([form, range]) => [new RegExp(`(?<![\\p{L}\\p{N}-])${form}(?![\\p{L}\\p{N}-])`, "iu"), range]);

/** Words before a year that make it a topic, or less than the whole decade. */
const NO_DATE = /\b(?:set|place|about|during|on|early|mid|late)(?:[\s-]+(?:in|the))*[\s-]*$/i;

/** The first date in a text: its places in code points, as in the API, and the first and the last year; or null. */
export function dateIn(text) {
  for (const [form, range] of FORMS) {
    const found = text.match(form);
    if (!found || NO_DATE.test(text.slice(0, found.index))) continue;
    const start = [...text.slice(0, found.index)].length;
    return { start, end: start + [...found[0]].length, range: range(...found.slice(1)).join("..") };
  }
  return null;
}

/** The field whose values are years or dates, among facets. */
export function dateField(facets) {
  const isDate = ({ value }) => /^(1\d|20)\d\d(-\d\d.*)?$/.test(value);
  return Object.keys(facets).find((field) => facets[field].length && facets[field].every(isDate));
}
