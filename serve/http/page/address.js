// Convert between questions and page URLs: /?q=...&system=...&year_from=2020, or /?answer=ID.
// With tab=strategy and max_hits=500, the question's strategy is made.

// Names of the API's filters. The form shows each value of a list as a chip.
export const NUMBERS = ["year_from", "year_to"];
export const LISTS = ["publication_types", "design", "journals", "languages", "mesh", "authors"];
// The server names the flags in the page: {name: [label of the field, words if true, if false]}.
export const FLAG_WORDS = JSON.parse(document.documentElement.dataset.flags);
export const FLAGS = Object.keys(FLAG_WORDS);

/** Return the URL that asks `request` again, without the earlier questions of its conversation. */
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

/**
 * Return the request with its question completed from the conversation, if it is a follow-up. Its
 * type is stated, as the text may begin with the question before it.
 */
export function standing(request, answer) {
  const { question, completed_by: completed } = answer.understood ?? {};
  return { ...request, question: question || request.question, type: completed ? answer.question.type : request.type };
}

export const answerAddress = (id) => `/?answer=${encodeURIComponent(id)}`;

/** Return the request in a URL, or null if there is none. The server validates it. */
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

/** Return true if a URL asks for the strategy of its question. */
export const isStrategy = (search) => new URLSearchParams(search).get("tab") === "strategy";

/** Return the id of the stored answer in a URL, or "" if there is none. */
export const answerIn = (search) => new URLSearchParams(search).get("answer") ?? "";
