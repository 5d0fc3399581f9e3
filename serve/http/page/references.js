// The references of answers: their numbers, their records, and how they are printed.

import { readCitations } from "./api.js";
import { linkTo, make, pubmedAddress } from "./dom.js";

const MOST_AUTHORS = 6;
const MOST_A_REQUEST = 100;
const known = new Map();

// What a later notice says of a citation, by the kind of link that its record bears.
const NOTICES = {
  RetractionIn: "Retracted", RetractedandRepublishedIn: "Retracted",
  ExpressionOfConcernIn: "The journal has published an expression of concern",
  ErratumIn: "Corrected since", CorrectedandRepublishedIn: "Corrected since",
  PartialRetractionIn: "Corrected since", UpdateIn: "Updated since",
};
const GRAVE = new Set(["Retracted", "The journal has published an expression of concern"]);

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
  const { title, year } = cited ?? answer.evidence.find((item) => item.passage.pmid === pmid) ?? {};
  return {
    pmid, title: title ?? "", year: year ?? null, authors: [], links: [], publication_types: cited?.retracted ? ["Retracted Publication"] : [],
  };
}

/** [{words, pmids, grave}] of what later notices say, the worst first. */
export function noticesOf({ links, publication_types: types }) {
  const found = new Map(types.includes("Retracted Publication") ? [["Retracted", []]] : []);
  for (const { kind, pmid } of links) {
    if (NOTICES[kind]) found.set(NOTICES[kind], [...(found.get(NOTICES[kind]) ?? []), ...(pmid ? [pmid] : [])]);
  }
  return [...found].map(([words, pmids]) => ({ words, pmids, grave: GRAVE.has(words) }))
    .sort((one, other) => Number(other.grave) - Number(one.grave));
}

function authorsOf(record) {
  const names = record.authors.map(({ last, initials, collective }) => collective || [last, initials].filter(Boolean).join(" "));
  return names.length > MOST_AUTHORS ? `${names.slice(0, MOST_AUTHORS).join(", ")}, et al` : names.join(", ");
}

const withStop = (text) => (!text || /[.?!]$/u.test(text) ? text : `${text}.`);

/** "N Engl J Med. 2020;12(3):11-9." of what the record has. */
function placeOf({ journal, journal_abbreviation: short, year, volume, issue, pages }) {
  const volumes = volume ? `;${volume}${issue ? `(${issue})` : ""}` : issue ? `;(${issue})` : "";
  const printed = `${year ?? ""}${volumes}${pages ? `:${pages}` : ""}`;
  return [withStop(short || journal || ""), printed ? `${printed}.` : ""].filter(Boolean).join(" ");
}

/** The reference as one line of plain text. */
export function referenceText(record) {
  const notices = noticesOf(record).map(({ words }) => `[${words}]`).join(" ");
  const parts = [
    notices, withStop(authorsOf(record)), withStop(record.title || "Untitled"), placeOf(record),
    record.doi ? `doi: ${record.doi}.` : "", `PMID: ${record.pmid}.`, record.pmcid ? `PMCID: ${record.pmcid}.` : "",
    pubmedAddress(record.pmid),
  ];
  return parts.filter(Boolean).join(" ");
}

/** A banner for each notice, or "" for none. */
export function noticeBanner(record) {
  const notices = noticesOf(record);
  if (!notices.length) return "";
  return make("span", { className: "notices" }, ...notices.map(({ words, pmids, grave }) => make("strong", { className: grave ? "notice bad" : "notice" },
    words, pmids.length ? ": see " : ".",
    ...pmids.flatMap((pmid, at) => [at ? ", " : "", linkTo(pubmedAddress(pmid), `PMID ${pmid}`)]), pmids.length ? "." : "")));
}

/** The reference as elements: notices, authors, linked title, journal, identifiers. */
export function referenceParts(record) {
  const { doi, pmid, pmcid } = record;
  return [
    noticeBanner(record), authorsOf(record) ? `${withStop(authorsOf(record))} ` : "",
    linkTo(pubmedAddress(pmid), withStop(record.title || "Untitled")), " ", placeOf(record), " ",
    make("span", { className: "ids" },
      doi ? linkTo(`https://doi.org/${encodeURIComponent(doi).replaceAll("%2F", "/")}`, `doi:${doi}`) : "",
      linkTo(pubmedAddress(pmid), `PMID ${pmid}`),
      pmcid ? linkTo(`https://pmc.ncbi.nlm.nih.gov/articles/${encodeURIComponent(pmcid)}/`, pmcid) : ""),
  ];
}
