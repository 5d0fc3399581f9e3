// Show an Answer (the response of /v1/answer) as a card: question, verdict, sentences, references.

import { citeLink } from "./cite_hint.js";
import { detailsView, lossFold, lossLine } from "./details_view.js";
import { exportMenu } from "./documents.js";
import { button, copy, make, pubmedAddress } from "./dom.js";
import { filtersInWords } from "./filters.js";
import { openPassage } from "./passage_dialog.js";
import { citedIn, noticeBanner, recordsOf, referenceParts, referenceText, shownTitle, stubOf } from "./references.js";
import { agreementLine, exactNames, isUnanswered, quotedSides, sidesView, statesExact, verdictBanner, verdictWords } from "./verdict_view.js";
import { byDesign, countsView, designBadge } from "./weigh_view.js";

const MOST_NEAREST = 5;
let cards = 0;

/** Return the PMIDs of the reference list, in its order. */
function listedIn(answer) {
  if (isUnanswered(answer)) {
    const quoted = (answer.closest ?? []).flatMap(({ pmids }) => pmids);
    return [...new Set([...quoted, ...answer.citations.slice(0, MOST_NEAREST).map(({ pmid }) => pmid)])];
  }
  const sides = quotedSides(answer);
  const quoted = sides ? [...sides.pro, ...sides.con].map(({ passage }) => passage.pmid) : [];
  return [...new Set([...citedIn(answer), ...quoted])];
}

/** Return an element with the exact answer, or null if there is none. */
export function exactView(answer) {
  const names = exactNames(answer);
  if (!names.length) return null;
  if (names.length === 1) return make("p", { className: "exact", textContent: names[0] });
  return make("div", { className: "exact" }, make("ol", {}, ...answer.exact.map(([first, ...others]) =>
    make("li", {}, first, others.length ? make("span", { className: "hint", textContent: ` (${others.join("; ")})` }) : ""))));
}

/** Return the answer as one paragraph; `cite(pmid, sentence, against)` returns a citation link. */
export function paragraphOf(answer, cite) {
  if (isUnanswered(answer)) return null;
  if (!answer.ideal.length) return make("p", { textContent: "None of the articles found answers this question." });
  return make("ul", { className: "sentences" }, ...answer.ideal.map((sentence) => make("li", {},
    `${sentence.text}\u00a0`,
    sentence.unsupported ? make("strong", { className: "lost", textContent: "No evidence supports this. " }) : "",
    ...sentence.pmids.map((pmid) => cite(pmid, sentence.text, false)),
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

/** Return the reference list; reads the records, adds their details, and fills `records`. */
export function referenceList(pmids, { title, idOf, stub, badge, passage, records }) {
  if (!pmids.length) return null;
  const note = make("p", { className: "note" });
  const items = pmids.map((pmid) => make("li", { id: idOf(pmid), tabIndex: -1 }));
  const fill = () => pmids.forEach((pmid, at) => items[at].replaceChildren(
    ...referenceParts({ ...stub(pmid), ...records.get(pmid) }), badge ? badge(pmid) : "", " ", passage ? passage(pmid) : ""));
  fill();
  recordsOf(pmids).then((found) => {
    for (const [pmid, record] of found) records.set(pmid, record);
    fill();
  }).catch((error) => { note.textContent = `Authors and journals could not be read: ${error.message}`; });
  return make("section", { className: "references" }, make("h3", { textContent: title }), make("ol", {}, ...items), note);
}

/** Return the answer with numbered references as plain text. */
async function plainText(answer, pmids, records) {
  for (const [pmid, record] of await recordsOf(pmids)) records.set(pmid, record);
  const numbers = (list) => list.map((pmid) => pmids.indexOf(pmid) + 1).join(", ");
  const verdict = verdictWords(answer)?.filter(Boolean) ?? [];
  const sentences = isUnanswered(answer) ? [] : answer.ideal.map(({ text, pmids: cited, contradicted, unsupported }) => [
    text, unsupported ? "(no evidence supports this)" : "", cited.length ? `[${numbers(cited)}]` : "",
    contradicted.length ? `(but see [${numbers(contradicted)}])` : ""].filter(Boolean).join(" "));
  const names = exactNames(answer);
  const references = pmids.map((pmid, at) => `${at + 1}. ${referenceText(records.get(pmid) ?? stubOf(answer, pmid))}`);
  const made = `CiteRay, ${new Date().toISOString().slice(0, 10)}, PubMed index ${answer.index_version} to ${answer.last_source || "its first file"}. Not medical advice.`;
  return [answer.question.body, verdict.join(". ").replace("..", "."), names.join("; ") && `${names.join("; ")}.`, sentences.join(" "),
    references.length ? `${isUnanswered(answer) ? "Nearest citations" : "References"}\n${references.join("\n")}` : "", made]
    .filter(Boolean).join("\n\n");
}

function suggested({ did_you_mean: question }, correct) {
  if (!question || !correct) return null;
  const mend = make("button", { type: "button", className: "link", textContent: question, onclick: () => correct(question) });
  return make("p", { className: "mean" }, "Did you mean: ", mend);
}

function understood(answer) {
  const question = answer.understood?.question;
  return question && question !== answer.question.body
    ? make("p", { className: "note", textContent: `Understood as: ${question}` }) : null;
}

/**
 * Return the card of an answer. `more` may have `actions` (elements), `opinion` (an element),
 * `correct(question)`, `before` (an earlier question) and `details` (an element).
 */
export function answerCard(answer, more = {}) {
  const card = `card-${cards += 1}`;
  const pmids = listedIn(answer);
  const records = new Map();
  const idOf = (pmid) => `${card}-ref-${pmids.indexOf(pmid) + 1}`;
  const cite = (pmid, said, against) => citeLink(answer, { n: pmids.indexOf(pmid) + 1, pmid, said, target: idOf(pmid), against });
  const passage = (pmid) => {
    const read = make("button", { type: "button", className: "link", textContent: "Read the passage" });
    read.setAttribute("aria-label", `Read the passage of reference ${pmids.indexOf(pmid) + 1}`);
    read.addEventListener("click", () => openPassage(answer, pmid, saidOf(answer, pmid)));
    return read;
  };
  const badge = (pmid) => designBadge(answer.citations.find((found) => found.pmid === pmid)
    ?? answer.evidence.find((item) => item.passage.pmid === pmid));
  const sets = [["These references", pmids], ["All citations found", answer.citations.map(({ pmid }) => pmid)]];
  const filters = filtersInWords(answer.filters);
  return make("article", { className: "card answer", "aria-label": "Answer" },
    more.before ? make("p", { className: "note", textContent: `Follow-up to: ${more.before}` }) : null,
    make("h2", { textContent: answer.question.body }), understood(answer), suggested(answer, more.correct),
    verdictBanner(answer), statesExact(answer) ? exactView(answer) : null, paragraphOf(answer, cite), closestView(answer, cite),
    ...(answer.caveats ?? []).map((caveat) => make("p", { className: "caveat", textContent: caveat })),
    more.details ? lossLine(answer, more.details) : lossFold(answer), filters ? make("p", { className: "note", textContent: filters }) : null,
    agreementLine(answer), sidesView(answer, cite),
    referenceList(pmids, { title: isUnanswered(answer) ? "Nearest citations" : "References", idOf, stub: (pmid) => stubOf(answer, pmid), badge, passage, records }),
    make("div", { className: "row actions" },
      button("Copy with references", async () => copy(await plainText(answer, pmids, records), "Answer with references")),
      ...(more.actions ?? []), button("Print", () => print()), exportMenu(sets, answer)), more.opinion ?? null);
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
