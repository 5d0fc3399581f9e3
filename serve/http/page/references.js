// References of answers: their order, and their list. The server formats them (readReferences).

import { send } from "./api.js";
import { linkTo, make, pubmedAddress, shortened } from "./dom.js";
import { byDesign } from "./weigh_view.js";

const MOST_OF_PASSAGE = 140;
const MOST_NEAREST = 5;
const MOST_A_SIDE = 5;
// PubMed's placeholder for a missing English title.
const NO_TITLE = "[Not Available].";
// Notices that do not retract the article begin with these words.
const MILD = /^(Corrected|It is) /u;
const UNKNOWN = { design: "other", subjects: [] };

export const isUnanswered = (answer) => answer.verdict === "not_enough_evidence";

/** Return the PMIDs that the sentences of `answer` name, in the order of citation. */
export function citedIn(answer) {
  return [...new Set(answer.ideal.flatMap(({ pmids, contradicted }) => [...pmids, ...contradicted]))];
}

/** Return the supporting and the contradicting sources that are quoted, if one contradicts. */
export function quotedSides({ sides }) {
  if (!sides?.contradicting.length) return null;
  return [sides.supporting.slice(0, MOST_A_SIDE), sides.contradicting.slice(0, MOST_A_SIDE)];
}

/** Return design and subjects of a source of `answer`. */
export const designOf = (answer, pmid) => answer.citations.find((found) => found.pmid === pmid)
  ?? answer.evidence.find(({ passage }) => passage.pmid === pmid) ?? UNKNOWN;

/** Return the PMIDs of the reference list, in the order of their numbers: as `cited_pmids` of the server. */
export function listedIn(answer) {
  const stated = answer.parts?.length ? answer.parts : [answer];
  const closest = stated.flatMap((part) => part.closest ?? []).flatMap(({ pmids }) => pmids);
  if (isUnanswered(answer)) {
    return [...new Set([...closest, ...answer.citations.slice(0, MOST_NEAREST).map(({ pmid }) => pmid)])];
  }
  const quoted = stated.flatMap((part) => (quotedSides(part) ?? []).flat()).map(({ pmid }) => pmid);
  return [...new Set([...citedIn(answer), ...quoted, ...closest])]
    .sort((one, other) => byDesign(designOf(answer, one), designOf(answer, other)));
}

/** Return what the answer itself says of a citation. */
export function stubOf(answer, pmid) {
  const cited = answer.citations.find((citation) => citation.pmid === pmid);
  const read = answer.evidence.find((item) => item.passage.pmid === pmid);
  const { title, year, notice } = cited ?? read ?? {};
  // Answers in the history from an earlier version have only a retraction flag.
  return { pmid, title: title ?? "", passage: read?.passage.text ?? "", year: year ?? null, notice: notice ?? (cited?.retracted ? "Retracted." : "") };
}

/** Return the title, or the beginning of the passage if NLM has no English title. */
export function shownTitle({ title, passage = "" }) {
  if (title === NO_TITLE && passage) return `No English title: “${shortened(passage, MOST_OF_PASSAGE)}”`;
  return title && title !== NO_TITLE ? title : "Untitled";
}

/** Return the notice of a retraction or correction with links, or "". */
export function noticeBanner({ notice }) {
  if (!notice) return "";
  const parts = notice.split(/(PMID \d+)/u).map((part, at) => (at % 2 ? linkTo(pubmedAddress(part.slice(5)), part) : part));
  return make("span", { className: "notices" }, make("strong", { className: MILD.test(notice) ? "notice" : "notice bad" }, ...parts));
}

/** Return an answer as the document `form`: its text, or its parts for the form "json". */
export async function readDocument(answer, form, address) {
  const path = `/v1/answers/document?form=${form}&address=${encodeURIComponent(address)}`;
  const reply = await send(path, { method: "POST", body: JSON.stringify(answer) });
  return form === "json" ? reply.json() : reply.blob();
}

/** Return the references of `pmids` in the style of the documents. */
export async function readReferences(pmids) {
  if (!pmids.length) return [];
  const reply = await send(`/v1/references?style=vancouver&pmids=${pmids.map(Number).join(",")}`);
  const { references } = await reply.json();
  return references.map(({ pmid, text }) => ({ pmid, runs: [{ text }], links: [["PubMed", pubmedAddress(pmid)]] }));
}

function runOf({ text, bold, italic }) {
  return bold || italic ? make(bold ? "b" : "i", { textContent: text }) : text;
}

function partsOf(stub, reference) {
  const notice = noticeBanner(stub);
  if (!reference) return [notice, linkTo(pubmedAddress(stub.pmid), shownTitle(stub)), stub.year ? ` (${stub.year})` : ""];
  return [notice, stub.title === NO_TITLE ? `${shownTitle(stub)} ` : "", ...reference.runs.map(runOf),
    make("span", { className: "ids" }, ...reference.links.map(([name, address]) => linkTo(address, name)))];
}

/**
 * Return the reference list of `pmids`, with the fields that the answer has until `references`, a promise of
 * [{pmid, runs, links, quote, origin}], is there. `about(pmid)` and `passage(pmid)` return elements.
 */
export function referenceList(pmids, references, { title, idOf, stub, about, passage }) {
  if (!pmids.length) return null;
  const note = make("p", { className: "note" });
  const items = pmids.map((pmid) => make("li", { id: idOf(pmid), tabIndex: -1 }));
  const fill = (found) => pmids.forEach((pmid, at) => {
    const reference = found.find((one) => one.pmid === pmid);
    const quote = reference?.quote ? make("q", { className: "basis", textContent: reference.quote }) : "";
    items[at].replaceChildren(about ? about(pmid) : "", reference?.origin ? make("span", { className: "design", textContent: reference.origin }) : "", quote, make("span", { className: "reference" }, ...partsOf(stub(pmid), reference)), " ", passage(pmid));
  });
  fill([]);
  references.then(fill).catch((error) => { note.textContent = `The references could not be completed: ${error.message}`; });
  return make("section", { className: "references" }, make("h3", { textContent: title }), make("ol", {}, ...items), note);
}

/** Return a list of the articles that the search found, for the time until the answer. */
export function foundEarly({ citations }) {
  return [make("h2", { textContent: `Found ${citations.length} ${citations.length === 1 ? "article" : "articles"}; writing the answer` }),
    make("ol", { className: "found" }, ...citations.slice(0, MOST_NEAREST).map(({ pmid, title, year }) => make("li", {},
      linkTo(pubmedAddress(pmid), shownTitle({ title })), year ? ` (${year})` : "")))];
}
