// Elements made of text alone: nothing that a server says is ever read as HTML.

/** An element of `tag` with `properties` and `children` (elements or texts; null is left out). */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A link that opens beside the page, and tells the other site nothing of it. */
export const linkTo = (href, textContent) =>
  make("a", { href, target: "_blank", rel: "noopener noreferrer", textContent });

export const pubmedAddress = (pmid) => `https://pubmed.ncbi.nlm.nih.gov/${pmid}/`;

/** A quiet button; `work` may be asynchronous, and what it raises is shown beside the button. */
export function button(textContent, work) {
  const element = make("button", { type: "button", className: "quiet", textContent });
  element.addEventListener("click", async () => {
    try {
      await work(element);
    } catch (error) {
      say(error.message, true);
    }
  });
  return element;
}

/** A problem in words, in the place of whatever `place` showed. */
export function showProblem(place, message) {
  place.replaceChildren(message ? make("p", { className: "problem", textContent: message }) : "");
}

let fading = 0;

/** A short message at the foot of the page, read aloud by screen readers. */
export function say(message, isProblem = false) {
  const place = byId("said");
  place.textContent = message;
  place.classList.toggle("bad", isProblem);
  clearTimeout(fading);
  fading = setTimeout(() => { place.textContent = ""; }, isProblem ? 12_000 : 5_000);
}

/** Puts `text` on the clipboard; where the browser keeps it shut, shows the text to copy by hand. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied.`);
  } catch {
    byId("by-hand-text").value = text;
    byId("by-hand").showModal();
    byId("by-hand-text").select();
  }
}

/** Saves a Blob under `name`. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** A time of the server's in the reader's own form. */
export const when = (time) => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

export function shortened(text, most) {
  const line = text.replace(/\s+/gu, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most).replace(/\s\S*$/u, "")}…`;
}

export const counted = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
