// The references of answers: their numbers, their records, and how they are printed.

import { readCitations } from "./api.js";
import { linkTo, make, pubmedAddress, shortened } from "./dom.js";

const MOST_AUTHORS = 6;
const MOST_A_REQUEST = 100;
const MOST_OF_PASSAGE = 140;
// What PubMed writes for a title that there is not in English.
const NO_TITLE = "[Not Available].";
const known = new Map();

// How a notice begins that takes nothing back: a correction, or that the article is a notice itself.
const MILD = /^(Corrected|It is) /u;

/** The PMIDs of `answer` in the order of their numbers: what is cited, then what speaks against. */
export function citedIn(answer) {
  const cited = answer.ideal.flatMap(({ pmids, contradicted }) => [...pmids, ...contradicted]);
  return [...new Set(cited)];
}

/** The records of `pmids` by PMID; those that cannot be read are left out. */
export async function recordsOf(pmids) {
  const unread = pmids.filter((pmid) => !known.has(pmid));
  for (let at = 0; at < unread.length; at += MOST_A_REQUEST) {
    const { citations } = await readCitations(unread.slice(at, at + MOST_A_REQUEST));
    for (const citation of citations) known.set(citation.pmid, citation);
  }
  return new Map(pmids.filter((pmid) => known.has(pmid)).map((pmid) => [pmid, known.get(pmid)]));
}

/** What an answer itself knows of a citation, for as long as its record is not there. */
export function stubOf(answer, pmid) {
  const cited = answer.citations.find((citation) => citation.pmid === pmid);
  const read = answer.evidence.find((item) => item.passage.pmid === pmid);
  const { title, year, notice } = cited ?? read ?? {};
  // Answers of an earlier version, in a history, say of a citation only that it was retracted.
  return { pmid, title: title ?? "", passage: read?.passage.text ?? "", year: year ?? null, authors: [], notice: notice ?? (cited?.retracted ? "Retracted." : "") };
}

/** The title; of an article that has none, how the passage that was found goes. */
export function shownTitle({ title, passage = "" }) {
  if (title && title !== NO_TITLE) return title;
  return passage ? `No English title: “${shortened(passage, MOST_OF_PASSAGE)}”` : title || "Untitled";
}

function authorsOf(record) {
  const names = record.authors.map(({ last, initials, collective }) => collective || [last, initials].filter(Boolean).join(" "));
  return names.length > MOST_AUTHORS ? `${names.slice(0, MOST_AUTHORS).join(", ")}, et al` : names.join(", ");
}

const withStop = (text) => (!text || /[.?!”]$/u.test(text) ? text : `${text}.`);

/** "N Engl J Med. 2020;12(3):11-9." of what the record has. */
function placeOf({ journal, journal_abbreviation: short, year, volume, issue, pages }) {
  const volumes = volume ? `;${volume}${issue ? `(${issue})` : ""}` : issue ? `;(${issue})` : "";
  const printed = `${year ?? ""}${volumes}${pages ? `:${pages}` : ""}`;
  return [withStop(short || journal || ""), printed ? `${printed}.` : ""].filter(Boolean).join(" ");
}

/** The reference as one line of plain text. */
export function referenceText(record) {
  const parts = [
    record.notice ? `[${record.notice}]` : "", withStop(authorsOf(record)), withStop(record.title || "Untitled"), placeOf(record),
    record.doi ? `doi: ${record.doi}.` : "", `PMID: ${record.pmid}.`, record.pmcid ? `PMCID: ${record.pmcid}.` : "",
    pubmedAddress(record.pmid),
  ];
  return parts.filter(Boolean).join(" ");
}

/** What became of the article, by the API's `notice`, its PMIDs as links; "" for nothing. */
export function noticeBanner({ notice }) {
  if (!notice) return "";
  const parts = notice.split(/(PMID \d+)/u).map((part, at) => (at % 2 ? linkTo(pubmedAddress(part.slice(5)), part) : part));
  return make("span", { className: "notices" }, make("strong", { className: MILD.test(notice) ? "notice" : "notice bad" }, ...parts));
}

/** The reference as elements: notice, authors, linked title, journal, identifiers. */
export function referenceParts(record) {
  const { doi, pmid, pmcid } = record;
  return [
    noticeBanner(record), authorsOf(record) ? `${withStop(authorsOf(record))} ` : "",
    linkTo(pubmedAddress(pmid), withStop(shownTitle(record))), " ", placeOf(record), " ",
    make("span", { className: "ids" },
      doi ? linkTo(`https://doi.org/${encodeURIComponent(doi).replaceAll("%2F", "/")}`, `doi:${doi}`) : "",
      linkTo(pubmedAddress(pmid), `PMID ${pmid}`),
      pmcid ? linkTo(`https://pmc.ncbi.nlm.nih.gov/articles/${encodeURIComponent(pmcid)}/`, pmcid) : ""),
  ];
}
