// Which citations may be found: the form's fields as the API's `filters`, and these in words.

import { byId } from "./dom.js";

const number = (id) => (byId(id).value ? { [id.replaceAll("-", "_")]: Number(byId(id).value) } : {});

/** What is chosen, by the API's names; {} where nothing is. */
export function chosenFilters() {
  const kind = byId("publication-type").value;
  return {
    ...number("year-from"), ...number("year-to"),
    ...(kind ? { publication_types: [kind] } : {}),
    ...(byId("only-humans").checked ? { humans: true } : {}),
    ...(byId("only-english").checked ? { languages: ["eng"] } : {}),
    ...(byId("only-abstract").checked ? { has_abstract: true } : {}),
  };
}

const yearsOf = ({ year_from: from, year_to: to, until }) => {
  const last = [to, until].filter(Boolean).join(" and ");
  return from && last ? `from ${from} to ${last}` : from ? `since ${from}` : last ? `until ${last}` : "";
};

/** The filters of a reply in one sentence; "" for none. */
export function filtersInWords(filters) {
  if (!filters) return "";
  const flag = (name, yes, no) => (filters[name] === true ? yes : filters[name] === false ? no : "");
  const parts = [
    yearsOf(filters), filters.publication_types.join(" or "), filters.journals.join(" or "),
    filters.languages.join(" or "), filters.mesh.join(" or "),
    flag("humans", "in humans", "not indexed as human"), flag("has_abstract", "with an abstract", "without an abstract"),
    flag("retracted", "retracted", "not retracted"),
  ].filter(Boolean);
  return parts.length ? `Only citations ${parts.join(", ")}.` : "";
}

/** Tells in the summary of the form how many filters are on. */
export function readyFilters() {
  const tell = () => {
    const count = Object.keys(chosenFilters()).length;
    byId("filters-on").textContent = count ? ` (${count} on)` : "";
  };
  byId("filters").addEventListener("input", tell);
  byId("clear-filters").addEventListener("click", () => {
    for (const field of byId("filters").querySelectorAll("input, select")) {
      if (field.type === "checkbox") field.checked = false; else field.value = "";
    }
    tell();
  });
}
