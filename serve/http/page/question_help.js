// What helps to ask: example questions, and names that complete a word. Neither is always there.

import { abilities } from "./abilities.js";
import { readJson } from "./api.js";

const EXAMPLES = "/v1/examples";
const SUGGEST = "/v1/suggest";
const MOST_EXAMPLES = 8;
const MOST_NAMES = 6;

/** The list in a reply, whether it is the reply or one of its fields. */
const listIn = (reply) => (Array.isArray(reply) ? reply : Object.values(reply ?? {}).find(Array.isArray) ?? []);

/** [{question, type}] that this index answers; [] where the server has none. */
export async function readExamples() {
  const { has } = await abilities();
  if (!has("get", EXAMPLES)) return [];
  try {
    return listIn(await readJson(EXAMPLES)).filter((one) => typeof one.question === "string").slice(0, MOST_EXAMPLES);
  } catch {
    // The first screen is complete without them.
    return [];
  }
}

/** Names that begin with `prefix`; [] where the server has none. */
export async function suggest(prefix, signal) {
  const { has } = await abilities();
  if (!has("get", SUGGEST)) return [];
  try {
    const names = listIn(await readJson(`${SUGGEST}?prefix=${encodeURIComponent(prefix)}`, signal));
    return names.map((one) => one.name ?? one).filter((name) => typeof name === "string").slice(0, MOST_NAMES);
  } catch {
    return [];
  }
}
