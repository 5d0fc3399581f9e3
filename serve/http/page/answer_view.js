// Show an Answer (the response of /v1/answer) as a card: question, verdict, sentences, references.

import { citeLink } from "./cite_hint.js";
import { detailsView, lossFold, lossLine } from "./details_view.js";
import { moreMenu } from "./documents.js";
import { button, copy, make, pubmedAddress } from "./dom.js";
import { filtersInWords } from "./filters.js";
import { openPassage } from "./passage_dialog.js";
import { designOf, isUnanswered, listedIn, noticeBanner, readDocument, referenceList, shownTitle, stubOf } from "./references.js";
import { sidesView, verdictView } from "./verdict_view.js";
import { byDesign, countsView, designBadge } from "./weigh_view.js";

let cards = 0;

const inOrder = (links) => links.sort((one, other) => one.textContent.localeCompare(other.textContent, "en", { numeric: true }));

/** Return the answer as one paragraph; `cite(pmid, sentence, against)` returns a citation link. */
export function paragraphOf(answer, cite) {
  if (isUnanswered(answer)) return null;
  if (!answer.ideal.length) return make("p", { textContent: "None of the articles found answers this question." });
  return make("ul", { className: "sentences" }, ...answer.ideal.map((sentence) => make("li", {},
    `${sentence.text}\u00a0`,
    sentence.unsupported ? make("strong", { className: "lost", textContent: "No evidence supports this. " }) : "",
    ...inOrder(sentence.pmids.map((pmid) => cite(pmid, sentence.text, false))),
    ...(sentence.contradicted.length ? [make("span", { className: "but", textContent: " but see " }),
      ...sentence.contradicted.map((pmid) => cite(pmid, sentence.text, true))] : []))));
}

/** Return the sentences that come closest if the question is not answered, otherwise null. */
function closestView(answer, cite) {
  if (!isUnanswered(answer) || !(answer.closest ?? []).length) return null;
  return make("section", { className: "closest" }, make("h3", { textContent: "Closest evidence" }),
    make("ul", { className: "sentences" }, ...answer.closest.map(({ text, pmids }) => make("li", {},
      `\u201c${text}\u201d\u00a0`, ...pmids.map((pmid) => cite(pmid, text, false))))));
}

const saidOf = (answer, pmid) => answer.ideal.find(({ pmids, contradicted }) => pmids.includes(pmid) || contradicted.includes(pmid))?.text
  ?? answer.question.body;

/** Return who wrote the answer, from which index and when, as the documents say it. */
function colophon(document) {
  const place = make("p", { className: "note colophon" });
  document.then(({ notes }) => { place.textContent = notes.filter((note) => !note.startsWith("This answer may be")).join(" "); })
    // The reference list reports the error.
    .catch(() => {});
  return place;
}

function suggested({ did_you_mean: question }, correct) {
  if (!question || !correct) return null;
  const mend = make("button", { type: "button", className: "link", textContent: question, onclick: () => correct(question) });
  return make("p", { className: "mean" }, "Did you mean: ", mend);
}

/** Return the question as it was understood, which `change(question)` asks again after editing. */
function understood(answer, change) {
  const question = answer.understood?.question;
  if (!question || question === answer.question.body) return null;
  const note = make("p", { className: "note" }, `Understood as: ${question} `);
  if (!change) return note;
  const field = make("textarea", { value: question, rows: 2, maxLength: 2000, "aria-label": "The question as understood" });
  const form = make("form", { hidden: true }, field, make("button", { className: "quiet", textContent: "Ask this" }));
  const edit = button("Edit", () => {
    form.hidden = !form.hidden;
    edit.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) field.focus();
  });
  edit.className = "link";
  edit.setAttribute("aria-expanded", "false");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) change(field.value.trim());
  });
  note.append(edit);
  return make("div", {}, note, form);
}

const caveatsOf = ({ caveats }) => (caveats ?? []).map((caveat) => make("p", { className: "caveat", textContent: caveat }));

/** Return one part of an answer, with its verdict. */
export const partView = (part, cite) => make("section", { className: "part", "aria-label": part.question.body },
  make("h3", { textContent: part.question.body }), verdictView(part), understood(part), paragraphOf(part, cite), closestView(part, cite), ...caveatsOf(part), sidesView(part, cite));

/** Return what an answer says; `cite(pmid, sentence, against)` returns a citation link. */
function statedIn(answer, cite) {
  if (answer.parts?.length) return answer.parts.map((part) => partView(part, cite));
  return [paragraphOf(answer, cite), closestView(answer, cite), ...caveatsOf(answer)];
}

/**
 * Return the card of an answer. `more` may have `actions` (elements), `opinion` (an element),
 * `correct(question)` and `change(question)`, `details` (an element) and the answer's `address`.
 */
export function answerCard(answer, more = {}) {
  const card = `card-${cards += 1}`;
  const pmids = listedIn(answer);
  const numberOf = (pmid) => pmids.indexOf(pmid) + 1;
  const idOf = (pmid) => `${card}-ref-${numberOf(pmid)}`;
  const cite = (pmid, said, against) => citeLink(answer, { n: numberOf(pmid), pmid, said, target: idOf(pmid), against });
  const passage = (pmid) => make("button", {
    type: "button", className: "link", textContent: "Read the passage", "aria-label": `Read the passage of reference ${numberOf(pmid)}`,
    onclick: () => openPassage(answer, pmid, saidOf(answer, pmid)),
  });
  const address = more.address ?? location.href;
  const document = readDocument(answer, "json", address);
  const references = document.then((read) => read.references);
  const sets = [["These references", pmids], ["All citations found", answer.citations.map(({ pmid }) => pmid)]];
  const filters = filtersInWords(answer.filters);
  return make("article", { className: "card answer", "aria-label": "Answer" },
    make("h2", { textContent: answer.question.body }), answer.parts?.length ? null : verdictView(answer),
    understood(answer, more.change), suggested(answer, more.correct), ...statedIn(answer, cite),
    more.details ? lossLine(answer, more.details) : lossFold(answer), filters ? make("p", { className: "note", textContent: filters }) : null,
    sidesView(answer, cite),
    referenceList(pmids, references, {
      title: isUnanswered(answer) ? "Nearest citations" : "References", idOf, stub: (pmid) => stubOf(answer, pmid),
      about: (pmid) => designBadge(designOf(answer, pmid)), passage,
    }),
    colophon(document),
    make("div", { className: "row actions" },
      button("Copy", async () => copy(await (await readDocument(answer, "text", address)).text(), "Answer with references")),
      moreMenu([...(more.actions ?? []), button("Print", () => print())], sets, answer, address)), more.opinion ?? null);
}

const ORDERS = {
  relevance: ["most relevant first", () => 0],
  design: ["strongest study design first", byDesign],
  newest: ["newest first", (one, other) => (other.year ?? 0) - (one.year ?? 0)],
  oldest: ["oldest first", (one, other) => (one.year ?? 9999) - (other.year ?? 9999)],
};

/** Return a list of all citations found, with a menu for their order. */
function foundView(answer) {
  const list = make("ol", { className: "found" });
  const select = make("select", {}, ...Object.entries(ORDERS).map(([value, [textContent]]) => make("option", { value, textContent })));
  const sort = () => list.replaceChildren(...[...answer.citations].sort(ORDERS[select.value][1]).map((citation) => make("li", {},
    noticeBanner(stubOf(answer, citation.pmid)),
    make("a", { href: pubmedAddress(citation.pmid), target: "_blank", rel: "noopener noreferrer", textContent: shownTitle(stubOf(answer, citation.pmid)) }),
    citation.year ? ` (${citation.year}) ` : " ", designBadge(citation), " ",
    make("button", { type: "button", className: "pmid", textContent: `PMID ${citation.pmid}`, onclick: () => openPassage(answer, citation.pmid, answer.question.body) }))));
  select.addEventListener("change", sort);
  sort();
  return make("details", { className: "card" }, make("summary", { textContent: `All citations found (${answer.citations.length})` }),
    countsView(answer), make("p", { className: "options" }, make("label", {}, "Order ", select)), list);
}

/** Return the card of an answer, all citations found, and the details. */
export function answerView(answer, more) {
  const details = detailsView(answer);
  return [answerCard(answer, { ...more, details }), answer.citations.length ? foundView(answer) : "", details];
}
