// Earlier questions with what they were asked with and their answers, in this browser alone.

import { byId, make, when } from "./dom.js";

const PLACE = "citeray-history";
const MOST = 20;

/** What was asked, of an entry of an earlier version of the page too. */
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
  // A full store forgets the oldest rather than the newest.
  for (let count = Math.min(entries.length, MOST); count >= 0; count -= 1) {
    try {
      localStorage.setItem(PLACE, JSON.stringify(entries.slice(0, count)));
      return;
    } catch { /* no room for so many */ }
  }
}

/** `open(entry)` shows an earlier one again: {at, request, answer}. */
export function showHistory(open) {
  const entries = read();
  byId("history-card").hidden = !entries.length;
  byId("history").replaceChildren(...entries.map((entry) => make("li", {},
    make("button", { type: "button", textContent: requestOf(entry).question, onclick: () => open(recalled(entry)) }),
    make("span", { className: "hint", textContent: ` ${when(entry.at)}, ${entry.answer.system}` }))));
}

const recalled = (entry) => ({ at: entry.at, request: requestOf(entry), answer: entry.answer });

/** The entry that was kept at that time; null where it is gone. */
export function recall(at) {
  const entry = at && read().find((one) => one.at === at);
  return entry ? recalled(entry) : null;
}

/** Keeps an answer in the place of an earlier one to the same; gives the time that it is recalled by. */
export function remember(request, answer) {
  const entries = read();
  const at = Math.max(Date.now(), (entries[0]?.at ?? 0) + 1);
  const same = JSON.stringify(request);
  write([{ at, request, answer }, ...entries.filter((entry) => JSON.stringify(requestOf(entry)) !== same)]);
  return at;
}

export function forget() {
  localStorage.removeItem(PLACE);
}
