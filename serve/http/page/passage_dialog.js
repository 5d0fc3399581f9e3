// Dialog with the passage of a citation, in which the supporting sentence is marked.

import { readCitation } from "./api.js";
import { byId, linkTo, make, pubmedAddress } from "./dom.js";
import { noticeBanner } from "./references.js";

const ENDED = /[.!?][)\]"'\u2019\u201d]*$/;
const words = (text) => new Set((text.toLowerCase().match(/[\p{L}\p{N}-]{3,}/gu) ?? []));

function ranked(text, said) {
  const wanted = words(said);
  const parts = text.match(/[^.!?]+(?:[.!?]+(?=\s|$)|[.!?](?=\S)[^.!?]*)*\s*/g) ?? [text];
  const share = parts.map((part) => {
    const own = [...words(part)];
    return own.filter((word) => wanted.has(word)).length / Math.sqrt(own.length || 1);
  });
  const best = share.indexOf(Math.max(...share));
  return { parts, best, share: share[best] };
}

/** Return the passage with the sentence most similar to `said` in a <mark>. */
export function marked(text, said) {
  const { parts, best, share } = ranked(text, said);
  return parts.map((part, at) => (at === best && share > 0 ? make("mark", { textContent: part }) : part));
}

/** Return the sentence most similar to `said` in the passages of `pmid`, or "". */
export function nearestSentence(answer, pmid, said) {
  const found = answer.evidence.filter((item) => item.passage.pmid === pmid)
    .map((item) => ({ ...ranked(item.passage.text, said), title: item.passage.section === "title" }))
    .sort((one, other) => other.share - one.share)[0];
  if (!found) return "";
  const sentence = found.parts[found.best].trim();
  // A passage may end within a sentence.
  const whole = found.title || found.best < found.parts.length - 1 || ENDED.test(sentence);
  return whole ? sentence : `${sentence}…`;
}

/** Show the passages of `pmid` in `answer` for the sentence `said`, then the whole record. */
export async function openPassage(answer, pmid, said) {
  const found = answer.evidence.filter((item) => item.passage.pmid === pmid);
  const title = found[0]?.title || answer.citations.find((c) => c.pmid === pmid)?.title;
  byId("passage-title").textContent = title || `PMID ${pmid}`;
  const passages = found.map((item) => make("p", {}, ...marked(item.passage.text, said)));
  const link = linkTo(pubmedAddress(pmid), `PMID ${pmid} at PubMed`);
  const record = make("div", { className: "note" });
  byId("passage-body").replaceChildren(...passages, make("p", {}, link), record);
  byId("passage").showModal();
  try {
    record.replaceChildren(...describe(await readCitation(pmid)));
  } catch (error) {
    record.textContent = `The whole record: ${error.message}`;
  }
}

function describe(citation) {
  const when = [citation.journal, citation.year].filter(Boolean).join(", ");
  const sections = citation.sections.map(({ label, text }) =>
    make("p", {}, label ? make("strong", { textContent: `${label}: ` }) : "", text));
  const whole = make("details", {}, make("summary", { textContent: "The whole abstract" }), ...sections);
  return [noticeBanner(citation), when ? make("p", { textContent: when }) : "", sections.length ? whole : ""];
}

export function readyDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
}
