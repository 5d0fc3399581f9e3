// Earlier questions with their answers, in this browser alone.

import { byId, make } from "./dom.js";

const PLACE = "citeray-history";
const MOST = 20;

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(kept) ? kept : [];
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

/** `open(answer)` shows an earlier one again. */
export function showHistory(open) {
  const entries = read();
  byId("history-card").hidden = !entries.length;
  byId("history").replaceChildren(...entries.map(({ at, answer }) => make("li", {},
    make("button", { type: "button", textContent: answer.question.body, onclick: () => open(answer) }),
    make("span", { className: "hint", textContent: ` ${new Date(at).toLocaleString()}, ${answer.system}` }))));
}

export function remember(answer) {
  write([{ at: Date.now(), answer }, ...read()]);
}

export function forget() {
  localStorage.removeItem(PLACE);
}
