// Elements made of text alone: nothing that a server says is ever read as HTML.

/** An element of `tag` with `properties` and `children` (elements or texts; null is left out). */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A problem in words, in the place of whatever `place` showed. */
export function showProblem(place, message) {
  place.replaceChildren(message ? make("p", { className: "problem", textContent: message }) : "");
}
