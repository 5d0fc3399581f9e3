// Name completion below a text box; arrow keys select a name, Enter or Tab takes it.

import { byId, counted, make } from "./dom.js";
import { suggest } from "./question_help.js";

const WAIT_MS = 150;
const FEWEST = 3;

/**
 * Complete names below `box` in the list `list`. `wordOf()` returns the beginning of a name,
 * `find(word, signal)` its completions, and `take(suggestion)` is called with the chosen one.
 * Return {close, key}: `key(event)` handles a key press, and returns true if the list used it.
 */
export function completion(box, list, { wordOf, find, take }) {
  let waiting = 0;
  let asking = null;
  let found = [];
  let at = -1;

  function close() {
    clearTimeout(waiting);
    asking?.abort();
    at = -1;
    list.hidden = true;
    box.removeAttribute("aria-activedescendant");
  }

  function choose(suggestion) {
    close();
    take(suggestion);
  }

  function mark(next) {
    const items = [...list.children];
    at = (next + items.length) % items.length;
    items.forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
    box.setAttribute("aria-activedescendant", items[at].id);
  }

  async function look() {
    const word = wordOf();
    if (word.length < FEWEST) return;
    const own = asking = new AbortController();
    const names = await find(word, own.signal);
    if (own.signal.aborted || !names.length || document.activeElement !== box) return;
    found = names;
    list.replaceChildren(...names.map((suggestion, place) => {
      const item = make("li", { id: `${list.id}-${place}`, role: "option", "aria-selected": "false", textContent: suggestion.name });
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        choose(suggestion);
      });
      return item;
    }));
    list.hidden = false;
    byId("names-said").textContent = `${counted(names.length, "name")}; arrow keys choose one`;
  }

  function key(event) {
    if (list.hidden) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(at + (event.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1));
    else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) choose(found[at]);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    return true;
  }

  box.addEventListener("input", () => {
    close();
    waiting = setTimeout(look, WAIT_MS);
  });
  box.addEventListener("blur", close);
  return { close, key };
}

let names = null;

export const suggestKey = (event) => names.key(event);

/** Complete names in the question. */
export function readySuggestions() {
  const box = byId("question");
  const wordOf = () => box.value.slice(0, box.selectionStart).match(/[\p{L}\p{N}-]+$/u)?.[0] ?? "";
  names = completion(box, byId("names"), {
    wordOf, find: suggest,
    take: ({ name }) => {
      const end = box.selectionStart;
      box.setRangeText(`${name} `, end - wordOf().length, end, "end");
      box.focus();
    },
  });
  byId("ask-form").addEventListener("submit", names.close);
}
