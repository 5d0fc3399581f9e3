// A question as the page's address, and back: /?q=...&system=...&year_from=2020, or /?answer=ID.

// The filters, by the API's names. A field of several values shows each as a chip.
export const NUMBERS = ["year_from", "year_to"];
export const LISTS = ["publication_types", "design", "journals", "languages", "mesh", "authors"];
export const FLAGS = ["humans", "has_abstract", "retracted"];

/** The address that asks `request` again; earlier turns are no part of it. */
export function addressOf(request) {
  const found = new URLSearchParams({ q: request.question });
  if (request.system) found.set("system", request.system);
  if (request.type && request.type !== "unknown") found.set("type", request.type);
  if (request.k && request.k !== 10) found.set("k", request.k);
  for (const [name, value] of Object.entries(request.filters ?? {})) {
    for (const one of [value].flat()) found.append(name, one);
  }
  return `/?${found}`;
}

export const answerAddress = (id) => `/?answer=${encodeURIComponent(id)}`;

/** The request that an address asks; null for none. What makes no sense, the server refuses. */
export function requestIn(search) {
  const given = new URLSearchParams(search);
  const question = given.get("q")?.trim();
  if (!question) return null;
  const filters = {};
  for (const name of NUMBERS) if (given.get(name)) filters[name] = Number(given.get(name));
  for (const name of LISTS) if (given.has(name)) filters[name] = given.getAll(name).filter(Boolean);
  for (const name of FLAGS) if (given.has(name)) filters[name] = given.get(name) === "true";
  if (given.get("until")) filters.until = given.get("until");
  return {
    question, type: given.get("type") || "unknown", k: Number(given.get("k")) || 10,
    ...(given.get("system") ? { system: given.get("system") } : {}), filters,
  };
}

/** The id of the stored answer that an address names; "" for none. */
export const answerIn = (search) => new URLSearchParams(search).get("answer") ?? "";
