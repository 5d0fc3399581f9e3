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

/** Return [{name, concept, heading}] of the names that begin with `prefix`, or [] on failure. */
export async function suggest(prefix, signal, kind = "any") {
  try {
    const { suggestions } = await readJson(`/v1/suggest?limit=${MOST_NAMES}&kind=${kind}&prefix=${encodeURIComponent(prefix)}`, signal);
    return suggestions;
  } catch {
    return [];
  }
}
