// Name completion below the question; arrow keys select a name, Enter or Tab inserts it.

import { byId, counted, make } from "./dom.js";
import { suggest } from "./question_help.js";

const WAIT_MS = 150;
const FEWEST = 3;
let waiting = 0;
let asking = null;
let at = -1;

const names = () => [...byId("names").children];

function close() {
  clearTimeout(waiting);
  asking?.abort();
  at = -1;
  byId("names").hidden = true;
  byId("question").removeAttribute("aria-activedescendant");
}

function take(name) {
  const box = byId("question");
  const before = box.value.slice(0, box.selectionStart);
  const word = before.match(/[\p{L}\p{N}-]+$/u)?.[0] ?? "";
  box.setRangeText(`${name} `, before.length - word.length, before.length, "end");
  close();
  box.focus();
}

function mark(next) {
  const all = names();
  at = (next + all.length) % all.length;
  all.forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
  byId("question").setAttribute("aria-activedescendant", all[at].id);
}

async function look() {
  const box = byId("question");
  const word = box.value.slice(0, box.selectionStart).match(/[\p{L}\p{N}-]+$/u)?.[0] ?? "";
  if (word.length < FEWEST) return;
  const own = asking = new AbortController();
  const found = await suggest(word, own.signal);
  if (own.signal.aborted || !found.length || document.activeElement !== box) return;
  byId("names").replaceChildren(...found.map((name, place) => {
    const item = make("li", { id: `name-${place}`, role: "option", "aria-selected": "false", textContent: name });
    item.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(name);
    });
    return item;
  }));
  byId("names").hidden = false;
  byId("names-said").textContent = `${counted(found.length, "name")}; arrow keys choose one`;
}

/** Handle a key press in the question; return true if the list of names used it. */
export function suggestKey(event) {
  if (byId("names").hidden) return false;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(at + (event.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1));
  else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) take(names()[at].textContent);
  else if (event.key === "Escape") close();
  else return false;
  event.preventDefault();
  return true;
}

export function readySuggestions() {
  byId("question").addEventListener("input", () => {
    close();
    waiting = setTimeout(look, WAIT_MS);
  });
  byId("question").addEventListener("blur", close);
  byId("ask-form").addEventListener("submit", close);
}
