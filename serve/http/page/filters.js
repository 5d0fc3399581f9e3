// Search filters: read them from the form, and show them as chips and in words.

import { FLAGS, FLAG_WORDS, LISTS, NUMBERS } from "./address.js";
import { byId, make, say } from "./dom.js";
import { suggest } from "./question_help.js";
import { completion } from "./suggest_box.js";

const chosen = Object.fromEntries(LISTS.map((name) => [name, []]));
const field = (name) => byId(name.replaceAll("_", "-"));

// Names of MeSH headings by their UI, the value of the filter; kept for a reload of the page.
const HEADINGS = "citeray-headings";
const UI = /^D\d+$/iu;
const headings = JSON.parse(sessionStorage.getItem(HEADINGS) ?? "{}");

/** Return the filters chosen in the form as the API's `filters`, {} if there are none. */
export function chosenFilters() {
  const found = {};
  for (const name of NUMBERS) if (field(name).value) found[name] = Number(field(name).value);
  if (field("until").value) found.until = field("until").value;
  for (const name of LISTS) if (chosen[name].length) found[name] = [...chosen[name]];
  for (const name of FLAGS) if (field(name).value) found[name] = field(name).value === "true";
  return found;
}

/** Replace the filters in the form. */
export function setFilters(filters) {
  for (const name of [...NUMBERS, "until"]) field(name).value = filters[name] ?? "";
  for (const name of FLAGS) field(name).value = filters[name] === undefined || filters[name] === null ? "" : String(filters[name]);
  for (const name of LISTS) chosen[name] = [...(filters[name] ?? [])];
  showChips();
}

const flagWord = (name, value) => FLAG_WORDS[name][value ? 1 : 2];

const wordOf = (name, value) => ({
  year_from: `since ${value}`, year_to: `to ${value}`, until: `published by ${value}`,
}[name] ?? (name in FLAG_WORDS ? flagWord(name, value) : named(name, value)));

function named(name, value) {
  const option = [...(field(name).options ?? [])].find((one) => one.value.toLowerCase() === value.toLowerCase());
  const word = option?.textContent ?? (name === "mesh" ? headings[value] ?? value : value);
  return { mesh: `MeSH ${word}`, authors: `author ${word}`, languages: `in ${word}` }[name] ?? word;
}

function without(name, value) {
  if (name in chosen) chosen[name] = chosen[name].filter((one) => one !== value);
  else field(name).value = "";
  showChips();
}

function showChips() {
  const filters = chosenFilters();
  const chips = Object.entries(filters).flatMap(([name, value]) => [value].flat().map((one) => {
    const word = wordOf(name, one);
    const remove = () => {
      without(name, one);
      (byId("chips").querySelector("button") ?? byId("question")).focus();
    };
    return make("li", {}, make("button", {
      type: "button", className: "chip", textContent: `${word} ×`, "aria-label": `Remove filter: ${word}`, onclick: remove,
    }));
  }));
  byId("chips").replaceChildren(...chips);
  byId("chips").hidden = !chips.length;
  byId("filters-on").textContent = chips.length ? ` (${chips.length} active)` : "";
  byId("clear-filters").hidden = !chips.length;
}

function add(name) {
  const value = field(name).value.trim();
  field(name).value = "";
  if (value && !chosen[name].includes(value)) chosen[name].push(value);
  showChips();
}

const yearsOf = ({ year_from: from, year_to: to, until }) => {
  const last = [to, until].filter(Boolean).join(" and ");
  return from && last ? `from ${from} to ${last}` : from ? `since ${from}` : last ? `until ${last}` : "";
};

/** Return the filters of a response as a sentence, or "" if there are none. */
export function filtersInWords(filters) {
  if (!filters) return "";
  const parts = [
    yearsOf(filters), ...LISTS.map((name) => (filters[name] ?? []).map((one) => (["languages", "design", "mesh"].includes(name) ? named(name, one) : one)).join(" or ")),
    ...FLAGS.map((name) => (typeof filters[name] === "boolean" ? flagWord(name, filters[name]) : "")),
  ].filter(Boolean);
  return parts.length ? `Only citations ${parts.join(", ")}.` : "";
}

function addHeading({ heading, concept }) {
  headings[heading] = concept;
  sessionStorage.setItem(HEADINGS, JSON.stringify(headings));
  field("mesh").value = heading;
  add("mesh");
}

/** Add the MeSH heading that is typed: a UI, or a name, which is looked up. */
async function addTyped() {
  const typed = field("mesh").value.trim();
  if (UI.test(typed)) return add("mesh");
  const found = await suggest(typed, undefined, "mesh");
  const same = found.find(({ name, concept }) => [name, concept].some((one) => one.toLowerCase() === typed.toLowerCase())) ?? found[0];
  return same ? addHeading(same) : say(`No MeSH heading begins with “${typed}”.`, true);
}

function readyHeadings() {
  const box = field("mesh");
  const names = completion(box, byId("mesh-names"), {
    wordOf: () => (UI.test(box.value.trim()) ? "" : box.value.trim()),
    find: (word, signal) => suggest(word, signal, "mesh"), take: addHeading,
  });
  box.addEventListener("keydown", (event) => {
    if (names.key(event) || event.key !== "Enter" || !box.value.trim()) return;
    event.preventDefault();
    names.close();
    addTyped();
  });
}

/** Return the field of a flag. */
function flagField(name) {
  const [label] = FLAG_WORDS[name];
  const options = [["", "any"], ["true", flagWord(name, true)], ["false", flagWord(name, false)]];
  return make("label", {}, `${label} `, make("select", { id: name.replaceAll("_", "-") },
    ...options.map(([value, textContent]) => make("option", { value, textContent }))));
}

export function readyFilters() {
  field("journals").closest("label").before(...FLAGS.map(flagField));
  readyHeadings();
  for (const name of LISTS.filter((one) => one !== "mesh")) {
    field(name).addEventListener("change", () => add(name));
    field(name).addEventListener("keydown", (event) => {
      // In this field, Enter adds a value instead of submitting the form.
      if (event.key !== "Enter" || field(name).tagName !== "INPUT" || !field(name).value) return;
      event.preventDefault();
      add(name);
    });
  }
  for (const name of [...NUMBERS, ...FLAGS, "until"]) field(name).addEventListener("change", showChips);
  byId("clear-filters").addEventListener("click", () => {
    setFilters({});
    byId("question").focus();
  });
  showChips();
}
