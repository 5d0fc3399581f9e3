// Earlier requests with their answers, stored in this browser only.

import { byId, make, when } from "./dom.js";

const PLACE = "citeray-history";
const MOST = 20;

/** Return the request of an entry, even if an earlier version of the page stored it. */
function requestOf({ request, answer }) {
  if (request) return request;
  const { body, type } = answer.question;
  const filters = Object.fromEntries(Object.entries(answer.filters ?? {})
    .filter(([, value]) => value !== null && value?.length !== 0));
  return { question: body, type, system: answer.system, k: 10, filters };
}

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(kept) ? kept.filter(({ answer }) => answer?.question) : [];
  } catch {
    return [];
  }
}

function write(entries) {
  // If the storage is full, drop the oldest entries.
  for (let count = Math.min(entries.length, MOST); count >= 0; count -= 1) {
    try {
      localStorage.setItem(PLACE, JSON.stringify(entries.slice(0, count)));
      return;
    } catch { /* Storage is full: try again with fewer entries. */ }
  }
}

/** Show the history; a click calls `open(entry)` with {at, request, answer}. */
export function showHistory(open) {
  const entries = read();
  byId("history-card").hidden = !entries.length;
  byId("history").replaceChildren(...entries.map((entry) => make("li", {},
    make("button", { type: "button", textContent: requestOf(entry).question, onclick: () => open(recalled(entry)) }),
    make("span", { className: "hint", textContent: ` ${when(entry.at)}, ${entry.answer.system}` }))));
}

const recalled = (entry) => ({ at: entry.at, request: requestOf(entry), answer: entry.answer, thread: threadBefore(entry) });

/** Return the entries of the conversation before `entry`, oldest first. */
function threadBefore({ before }) {
  const entry = before && read().find(({ at }) => at === before);
  return entry ? [...threadBefore(entry), { at: entry.at, request: requestOf(entry), answer: entry.answer }] : [];
}

/** Return the entry stored at the time `at`, or null. */
export function recall(at) {
  const entry = at && read().find((one) => one.at === at);
  return entry ? recalled(entry) : null;
}

/** Store an answer, replace an earlier one to the same request, and return the time as its id. `before` is the id of the turn before it. */
export function remember(request, answer, before) {
  const entries = read();
  const at = Math.max(Date.now(), (entries[0]?.at ?? 0) + 1);
  const same = JSON.stringify(request);
  write([{ at, request, answer, before }, ...entries.filter((entry) => JSON.stringify(requestOf(entry)) !== same)]);
  return at;
}

export function forget() {
  localStorage.removeItem(PLACE);
}
