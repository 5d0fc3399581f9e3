// References of answers: numbers, records and formatting.

import { readCitations } from "./api.js";
import { linkTo, make, pubmedAddress, shortened } from "./dom.js";

const MOST_AUTHORS = 6;
const MOST_A_REQUEST = 100;
const MOST_OF_PASSAGE = 140;
// PubMed's placeholder for a missing English title.
const NO_TITLE = "[Not Available].";
const known = new Map();

// Notices that do not retract the article begin with these words.
const MILD = /^(Corrected|It is) /u;

/** Return the PMIDs of `answer` in the order of their numbers, the order of citation. */
export function citedIn(answer) {
  const cited = answer.ideal.flatMap(({ pmids, contradicted }) => [...pmids, ...contradicted]);
  return [...new Set(cited)];
}

/** Return the records of `pmids` by PMID; records that are not in the index are left out. */
export async function recordsOf(pmids) {
  const unread = pmids.filter((pmid) => !known.has(pmid));
  for (let at = 0; at < unread.length; at += MOST_A_REQUEST) {
    const { citations } = await readCitations(unread.slice(at, at + MOST_A_REQUEST));
    for (const citation of citations) known.set(citation.pmid, citation);
  }
  return new Map(pmids.filter((pmid) => known.has(pmid)).map((pmid) => [pmid, known.get(pmid)]));
}

/** Return what the answer itself says of a citation, for use until the record is read. */
export function stubOf(answer, pmid) {
  const cited = answer.citations.find((citation) => citation.pmid === pmid);
  const read = answer.evidence.find((item) => item.passage.pmid === pmid);
  const { title, year, notice } = cited ?? read ?? {};
  // Answers in the history from an earlier version have only a retraction flag.
  return { pmid, title: title ?? "", passage: read?.passage.text ?? "", year: year ?? null, authors: [], notice: notice ?? (cited?.retracted ? "Retracted." : "") };
}

/** Return the title, or the beginning of the passage if there is no English title. */
export function shownTitle({ title, passage = "" }) {
  if (title && title !== NO_TITLE) return title;
  return passage ? `No English title: “${shortened(passage, MOST_OF_PASSAGE)}”` : title || "Untitled";
}

function authorsOf(record) {
  const names = record.authors.map(({ last, initials, collective }) => collective || [last, initials].filter(Boolean).join(" "));
  return names.length > MOST_AUTHORS ? `${names.slice(0, MOST_AUTHORS).join(", ")}, et al` : names.join(", ");
}

const withStop = (text) => (!text || /[.?!”]$/u.test(text) ? text : `${text}.`);

/** Return journal, year, volume, issue and pages: "N Engl J Med. 2020;12(3):11-9." */
function placeOf({ journal, journal_abbreviation: short, year, volume, issue, pages }) {
  const volumes = volume ? `;${volume}${issue ? `(${issue})` : ""}` : issue ? `;(${issue})` : "";
  const printed = `${year ?? ""}${volumes}${pages ? `:${pages}` : ""}`;
  return [withStop(short || journal || ""), printed ? `${printed}.` : ""].filter(Boolean).join(" ");
}

/** Return the reference as one line of plain text. */
export function referenceText(record) {
  const parts = [
    record.notice ? `[${record.notice}]` : "", withStop(authorsOf(record)), withStop(record.title || "Untitled"), placeOf(record),
    record.doi ? `doi: ${record.doi}.` : "", `PMID: ${record.pmid}.`, record.pmcid ? `PMCID: ${record.pmcid}.` : "",
    pubmedAddress(record.pmid),
  ];
  return parts.filter(Boolean).join(" ");
}

/** Return the notice of a retraction or correction with links, or "". */
export function noticeBanner({ notice }) {
  if (!notice) return "";
  const parts = notice.split(/(PMID \d+)/u).map((part, at) => (at % 2 ? linkTo(pubmedAddress(part.slice(5)), part) : part));
  return make("span", { className: "notices" }, make("strong", { className: MILD.test(notice) ? "notice" : "notice bad" }, ...parts));
}

/** Return the reference as elements: notice, authors, linked title, journal, identifiers. */
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
