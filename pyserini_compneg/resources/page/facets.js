// The most frequent values of filter fields among all documents that match. A press makes a value a condition, or none.

import { element, plain } from "./text.js";

const FIELDS = 5; // each costs the server time
const VALUES = 6;

/**
 * The parameters that count the values of some fields: those of the search itself, then those of one more request for each
 * field with a condition. Any of a field's values will do, so its values are counted without its own conditions.
 */
export function facetRequests(fields, conditions) {
  const counted = fields.slice(0, FIELDS);
  const isOf = (field) => (condition) => condition.match(/^[^=<>]*/)[0] === field;
  const [bound, free] = [true, false].map((is) => counted.filter((field) => conditions.some(isOf(field)) === is));
  const asked = (names) => (names.length ? { facets: names.map((name) => `${name}:${VALUES}`).join(",") } : {});
  return [asked(free), ...bound.map((field) => ({ ...asked([field]), hits: 1, filter: conditions.filter((one) => !isOf(field)(one)) }))];
}

/** Shows the values, and the conditions that are chosen; `toggle` gets the condition that is pressed. */
export function showFacets(section, facets, conditions, toggle) {
  const focused = document.activeElement?.dataset?.condition;
  const rows = Object.entries(facets).map(([field, values]) => {
    const telling = values.filter(({ value, count }) => count > 1 || conditions.includes(`${field}=${value}`));
    const shown = new Map(telling.map(({ value, count }) => [`${field}=${value}`, count]));
    for (const one of conditions) if (one.startsWith(`${field}=`) && !shown.has(one)) shown.set(one, null);
    return [field, [...shown]];
  }).filter(([, shown]) => shown.length);
  section.hidden = !rows.length;
  section.querySelector("dl").replaceChildren(...rows.flatMap(([field, shown]) => [
    element("dt", {}, element("bdi", {}, plain(field))),
    element("dd", {}, ...shown.map(([condition, count]) => element("button", {
      type: "button", "data-condition": condition, "aria-pressed": String(conditions.includes(condition)), onclick: () => toggle(condition),
    }, element("bdi", {}, plain(condition.slice(field.length + 1))), count === null ? null : element("small", {}, ` ${count.toLocaleString("en")}`)))),
  ]));
  if (focused) [...section.querySelectorAll("button")].find((one) => one.dataset.condition === focused)?.focus();
}
