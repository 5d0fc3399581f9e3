// Create elements from text only: no response is ever parsed as HTML.

/** Return an element with `properties` and `children` (elements, texts, or null for none). */
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

/** Return a link that opens in a new tab and sends no referrer. */
export const linkTo = (href, textContent) =>
  make("a", { href, target: "_blank", rel: "noopener noreferrer", textContent });

export const pubmedAddress = (pmid) => `https://pubmed.ncbi.nlm.nih.gov/${pmid}/`;

/** Return a button that runs `work`, which may be asynchronous; `say` shows its error. */
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

/** Show an error message in `place`. */
export function showProblem(place, message) {
  place.replaceChildren(message ? make("p", { className: "problem", textContent: message }) : "");
}

let fading = 0;

/** Show a short message at the bottom of the page, also for screen readers. */
export function say(message, isProblem = false) {
  const place = byId("said");
  place.textContent = message;
  place.classList.toggle("bad", isProblem);
  clearTimeout(fading);
  fading = setTimeout(() => { place.textContent = ""; }, isProblem ? 12_000 : 5_000);
}

/** Copy `text` to the clipboard, or show it if the browser does not allow that. */
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

/** Save a Blob as the file `name`. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** Format a time of the server for the reader's locale. */
export const when = (time) => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

export function shortened(text, most) {
  const line = text.replace(/\s+/gu, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most).replace(/\s\S*$/u, "")}…`;
}

export const counted = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
