// The conditions that are chosen, and the most frequent values of filter fields among all documents that match.

import { conditionsOf, fieldOf } from "./state.js";
import { element, plain } from "./text.js";

const FIELDS = 5; // each costs the server time
const VALUES = 8;
const RANGE = /^(?:-?\d.*)?\.\.(?:<?-?\d.*)?$/s;

/** Whether a condition is one value of a field. */
export function isValue(condition) {
  const value = condition.slice(fieldOf(condition).length);
  return value.startsWith("=") && !RANGE.test(value.slice(1));
}

/** Whether a condition means just the value of a facet; a value such as `1990..1999` or `a, year=3` is read otherwise. */
function isExact(condition) {
  const [only, ...others] = conditionsOf(condition);
  return only === condition && !others.length && isValue(condition) && !/^[^=]*=\s*(?:[<>]|$)/.test(condition);
}

/**
 * The parameters that count the values of some fields: those of the search itself, then those of one more request for each
 * field of which a value is chosen. Any of a field's values will do, so they are counted without its own conditions.
 */
export function facetRequests(fields, conditions) {
  const counted = fields.slice(0, FIELDS);
  const isOf = (field) => (condition) => fieldOf(condition) === field;
  const [bound, free] = [true, false].map((is) => counted.filter((field) => conditions.filter(isValue).some(isOf(field)) === is));
  const asked = (names) => (names.length ? { facets: names.map((name) => `${name}:${VALUES}`).join(",") } : {});
  return [asked(free), ...bound.map((field) => ({ ...asked([field]), hits: 0, filter: conditions.filter((one) => !isOf(field)(one)) }))];
}

/** Shows the values of each field; `toggle` gets the condition that is pressed. */
export function showFacets(section, fields, facets, conditions, toggle) {
  const focused = document.activeElement?.dataset?.condition;
  const groups = fields.filter((field) => facets.has(field)).map((field) => {
    const telling = facets.get(field).filter(({ value, count }) => count > 1 || conditions.includes(`${field}=${value}`));
    return telling.length && element("fieldset", {}, element("legend", {}, element("bdi", {}, plain(field))),
      ...telling.map(({ value, count }) => {
        const condition = `${field}=${value}`;
        const name = [element("bdi", {}, plain(String(value))), element("small", {}, ` ${count.toLocaleString("en")}`)];
        if (!isExact(condition)) return element("span", {}, ...name);
        const pressed = String(conditions.includes(condition));
        return element("button", { type: "button", "data-condition": condition, "aria-pressed": pressed, onclick: () => toggle(condition) }, ...name);
      }));
  });
  section.replaceChildren(...groups.filter(Boolean));
  if (focused) [...section.querySelectorAll("button")].find((one) => one.dataset.condition === focused)?.focus();
}

/** Shows the conditions, each with a button that removes it. `fromWords` is the one that the words of the query made. */
export function showConditions(list, conditions, fromWords, remove) {
  list.hidden = !conditions.length;
  list.replaceChildren(...conditions.map((one) => element("li", {},
    element("button", { type: "button", "aria-label": `Remove the condition ${plain(one)}`, onclick: () => remove(one) },
      element("bdi", {}, said(one)), one === fromWords ? element("small", {}, " from your words") : null, element("span", { "aria-hidden": "true" }, " ×")))));
}

function said(condition) {
  const field = fieldOf(condition);
  const value = condition.slice(field.length);
  const range = isValue(condition) ? null : value.match(/^=(.*)\.\.(.*)$/s);
  if (!range) return plain(`${field} ${value.replace(/^=/, "")}`);
  const [first, last] = range.slice(1);
  return plain(`${field} ${!first ? `until ${last}` : !last ? `since ${first}` : first === last ? first : `${first} to ${last}`}`);
}
