// The first screen: size of the index, and example questions.

import { readReadiness } from "./api.js";
import { byId, counted, make } from "./dom.js";
import { readExamples } from "./question_help.js";

const TYPES = { yesno: "Yes or no", factoid: "A fact", list: "A list", summary: "A summary", unknown: "Other" };

/** Show the number of articles and the last PubMed file, or that the server is loading. */
export async function tellIndex() {
  try {
    const { stages, citations, index_date: updated, coverage } = await readReadiness();
    const [there, all] = coverage.split("/").map(Number);
    const until = updated ? `, updated ${new Date(updated).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" })}` : "";
    const partly = there < all ? ` Part of it is not available now (${coverage}).` : "";
    byId("indexed").textContent = !Object.values(stages).includes("loading")
      ? `Searches ${counted(citations, "PubMed article")}${until}.${partly}` : "The server is still loading; questions can be asked in a moment.";
  } catch {
    byId("indexed").textContent = "The server cannot be reached; is it running?";
  }
}

/** Show example questions by type; a click calls `ask(question, type)`. */
export async function offerExamples(ask) {
  const examples = await readExamples();
  byId("examples").hidden = !examples.length;
  byId("example-list").replaceChildren(...examples.map(({ question, type }) => make("li", {},
    make("span", { className: "hint", textContent: TYPES[type] ?? TYPES.unknown }),
    make("button", { type: "button", className: "link", textContent: question, onclick: () => ask(question, type) }))));
}

/** Show or hide the options of a question that has been asked. */
export function fold(open) {
  document.body.classList.toggle("unfolded", open);
  byId("options").setAttribute("aria-expanded", String(open));
}

/** Fold the form to one line after asking; "Options" opens it again. */
export function readyFold() {
  byId("options").addEventListener("click", () => fold(!document.body.classList.contains("unfolded")));
  byId("ask-form").addEventListener("submit", () => fold(false));
}
