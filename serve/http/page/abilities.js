// What this server can do, by its own OpenAPI document: the page offers nothing else.

import { readDocument } from "./api.js";

let asked = null;

const NOTHING = { has: () => false, takes: () => false };

/** `has(method, path)` of routes, `takes(form, field)` of the fields of a request. */
export function abilities() {
  asked ??= readDocument().then(({ paths, components }) => ({
    has: (method, path) => Boolean(paths[path]?.[method]),
    takes: (form, field) => Boolean(components?.schemas?.[form]?.properties?.[field]),
  })).catch(() => {
    asked = null;
    return NOTHING;
  });
  return asked;
}
