// How plain words are read, in the words themselves. A click gives a word another role.

import { element, plain } from "./text.js";

const ROLES = { W: "wanted", X: "excluded", S: "shared", OR: "or", AND: "and", O: "not used" };
const ORDER = Object.keys(ROLES);

/** Shows a reading; `change` gets the tags after a click, `edit` the expression that is to be edited. */
export function showReading(section, reading, change, edit) {
  const focused = document.activeElement?.dataset?.place;
  const tags = reading.words.map((word) => word.tag);
  const characters = [...reading.text]; // spans count characters as Python does
  const pieces = [];
  let place = 0;
  reading.words.forEach(({ span: [start, end], tag }, i) => {
    pieces.push(characters.slice(place, start).join(""));
    const word = characters.slice(start, end).join("");
    pieces.push(/[\p{L}\p{N}]/u.test(word) ? chip(word, tag, i, () => change(next(tags, i))) : word);
    place = end;
  });
  pieces.push(characters.slice(place).join(""));
  const sure = reading.understood ? `${Math.round(100 * reading.confidence)} % sure` : `may be misread: ${reading.doubts.join("; ")}`;
  section.replaceChildren(
    element("p", { class: "words" }, ...pieces),
    element("p", {}, "Read as ", element("code", {}, plain(reading.expression)), element("span", { class: "quiet" }, ` (${plain(sure)}) `),
      element("button", { type: "button", onclick: () => edit(reading.expression) }, "Edit it")),
    element("p", { class: "quiet" }, "Press a word to change its role: ", Object.values(ROLES).join(", "), "."),
  );
  section.hidden = false;
  section.querySelector(`[data-place="${focused}"]`)?.focus();
}

function chip(word, tag, place, press) {
  const label = `${word}: ${ROLES[tag]}. Change its role`;
  return element("button", { type: "button", class: `word ${tag}`, "data-place": place, "aria-label": label, onclick: press },
    plain(word), element("small", { "aria-hidden": "true" }, ROLES[tag]));
}

function next(tags, place) {
  return tags.with(place, ORDER[(ORDER.indexOf(tags[place]) + 1) % ORDER.length]);
}
