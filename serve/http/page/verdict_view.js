// The verdict on an answer as elements: a banner where it is not "answered", badges on evidence.

import { make } from "./dom.js";

const STANCES = { support: "supports", contradict: "contradicts" };
const MOST_NEAREST = 5;
const MOST_QUOTED = 2;
const QUOTE_CHARACTERS = 400;
const BADGE_CHARACTERS = 60;

export const isUnanswered = (answer) => answer.verdict === "not_enough_evidence";

/** A yes or no is not stated on its own where sources disagree. */
export const statesExact = (answer) => !(answer.verdict === "mixed" && typeof answer.exact === "string");

function shortened(text, most) {
  const line = text.replace(/\s+/gu, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most).replace(/\s\S*$/u, "")}…`;
}

/** The stance and what it is towards ("supports: yes"); "" where nothing is stated. */
export function stanceBadge({ stance, stance_on: on }) {
  if (stance === "unknown") return "";
  const named = STANCES[stance];
  if (!named) return make("span", { className: "stance none", textContent: "neither" });
  const text = on ? `${named}: ${shortened(on, BADGE_CHARACTERS)}` : named;
  return make("span", { className: `stance ${named}`, textContent: text, title: on ?? "" });
}

function nearest(answer, pmidButton) {
  if (!answer.citations.length) return [];
  const items = answer.citations.slice(0, MOST_NEAREST).map(({ pmid, title, year, retracted }) => make("li", {},
    retracted ? make("strong", { className: "lost", textContent: "Retracted. " }) : "",
    make("a", {
      href: `https://pubmed.ncbi.nlm.nih.gov/${pmid}/`, target: "_blank", rel: "noopener noreferrer",
      textContent: title || "Untitled citation",
    }), year ? ` (${year}) ` : " ", pmidButton(answer, pmid, answer.question.body)));
  return [make("p", { textContent: "Nearest citations:" }), make("ol", {}, ...items)];
}

function sides(answer, pmidButton) {
  const quoted = Object.keys(STANCES).flatMap((stance) => answer.evidence
    .filter((item) => item.stance === stance).slice(0, MOST_QUOTED));
  const items = quoted.map((item) => make("li", {}, stanceBadge(item),
    make("q", { textContent: shortened(item.passage.text, QUOTE_CHARACTERS) }), " ",
    pmidButton(answer, item.passage.pmid, item.passage.text, item.stance === "contradict")));
  return items.length ? [make("ul", { className: "sides" }, ...items)] : [];
}

const banner = (kind, title, ...children) => make("div", { className: `verdict ${kind}` },
  make("p", { className: "verdict-title", textContent: title }), ...children);

/** The banner, or null for an answer that needs none. */
export function verdictBanner(answer, pmidButton) {
  if (isUnanswered(answer)) {
    const what = answer.question.given?.length ? "The given passages do" : "The indexed literature does";
    return banner("unanswered", "Not enough evidence", make("p", { textContent: `${what} not answer this question.` }),
      ...nearest(answer, pmidButton));
  }
  if (answer.verdict !== "mixed") return null;
  const leaning = typeof answer.exact === "string" ? make("p", { textContent: `The evidence leans to ${answer.exact}.` }) : "";
  return banner("mixed", "Sources disagree", leaning, ...sides(answer, pmidButton));
}
