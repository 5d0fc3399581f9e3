// What helps to ask: example questions, and names that complete a word.

import { readJson } from "./api.js";

const MOST_NAMES = 6;

/** [{question, type}] that this index answers; [] where there are none or they cannot be read. */
export async function readExamples() {
  try {
    return (await readJson("/v1/examples")).examples;
  } catch {
    // The first screen is complete without them.
    return [];
  }
}

/** Names that begin with `prefix`; [] where there are none or they cannot be read. */
export async function suggest(prefix, signal) {
  try {
    const { suggestions } = await readJson(`/v1/suggest?limit=${MOST_NAMES}&prefix=${encodeURIComponent(prefix)}`, signal);
    return suggestions.map(({ name }) => name);
  } catch {
    return [];
  }
}
