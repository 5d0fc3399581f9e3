// Example questions and name completion.

import { readJson } from "./api.js";

const MOST_NAMES = 6;

/** Return [{question, type}] that this index can answer, or [] on failure. */
export async function readExamples() {
  try {
    return (await readJson("/v1/examples")).examples;
  } catch {
    // The first screen works without examples.
    return [];
  }
}

/** Return the names that begin with `prefix`, or [] on failure. */
export async function suggest(prefix, signal) {
  try {
    const { suggestions } = await readJson(`/v1/suggest?limit=${MOST_NAMES}&prefix=${encodeURIComponent(prefix)}`, signal);
    return suggestions.map(({ name }) => name);
  } catch {
    return [];
  }
}
