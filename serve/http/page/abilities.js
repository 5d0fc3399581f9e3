// What this server can do, by its own OpenAPI document: the page offers nothing else.

import { readDocument } from "./api.js";

let asked = null;

const NOTHING = { has: () => false };

/** `has(method, path)` of routes: what users keep, and batches, are not in every server. */
export function abilities() {
  asked ??= readDocument().then(({ paths }) => ({ has: (method, path) => Boolean(paths[path]?.[method]) })).catch(() => {
    asked = null;
    return NOTHING;
  });
  return asked;
}
