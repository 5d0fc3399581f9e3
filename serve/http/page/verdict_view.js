// The verdict of an answer in words, and its supporting and contradicting sources.

import { make, shortened } from "./dom.js";

const STANCES = { support: "supports", contradict: "contradicts" };
const MOST_A_SIDE = 5;
const QUOTE_CHARACTERS = 400;
const BADGE_CHARACTERS = 60;

export const isUnanswered = (answer) => answer.verdict === "not_enough_evidence";

/** Return true unless the exact answer is yes or no and the sources disagree. */
export const statesExact = (answer) => !(answer.verdict === "mixed" && typeof answer.exact === "string");

/** Return [title, sentence] of a verdict other than "answered", or null. */
export function verdictWords(answer) {
  if (isUnanswered(answer)) {
    if (answer.filtered_out) return ["The filters leave no article", answer.filtered_out];
    const sources = answer.question.given?.length ? "the given passages" : "the articles that it found";
    return ["Not enough evidence", `CiteRay could not decide this from ${sources}.`];
  }
  if (answer.verdict !== "mixed") return null;
  return ["Sources disagree", typeof answer.exact === "string" ? `The evidence leans to ${answer.exact}.` : ""];
}

/** Return the banner of a verdict other than "answered", or null. */
export function verdictBanner(answer) {
  const words = verdictWords(answer);
  if (!words) return null;
  return make("div", { className: isUnanswered(answer) ? "verdict unanswered" : "verdict mixed" },
    make("p", { className: "verdict-title", textContent: words[0] }),
    words[1] ? make("p", { textContent: words[1] }) : null);
}

/** Return the exact answer as a list: ["Yes"], or names with synonyms; [] if there is none. */
export function exactNames(answer) {
  const { exact } = answer;
  if (!exact?.length || !statesExact(answer)) return [];
  if (typeof exact === "string") return [exact === "yes" ? "Yes" : exact === "no" ? "No" : exact];
  return exact.map(([first, ...others]) => (others.length ? `${first} (${others.join("; ")})` : first));
}

/** Return the stance of a passage and its target ("supports: yes"), or "" if it is unknown. */
export function stanceBadge({ stance, stance_on: on }) {
  if (stance === "unknown") return "";
  const named = STANCES[stance];
  if (!named) return make("span", { className: "stance none", textContent: "neither" });
  const text = on ? `${named}: ${shortened(on, BADGE_CHARACTERS)}` : named;
  return make("span", { className: `stance ${named}`, textContent: text, title: on ?? "" });
}

const onSide = (answer, stance) => answer.evidence.filter((item) => item.stance === stance);

/** Return the quoted passages of both sides if one contradicts the answer, otherwise null. */
export function quotedSides(answer) {
  const [pro, con] = ["support", "contradict"].map((stance) => onSide(answer, stance));
  return con.length && !isUnanswered(answer) ? { pro: pro.slice(0, MOST_A_SIDE), con: con.slice(0, MOST_A_SIDE) } : null;
}

/** Return how many of the sources support the answer, or null for fewer than two sources. */
export function agreementLine({ agreement }) {
  const { sources = 0, supporting, weighted } = agreement ?? {};
  if (sources < 2) return null;
  const share = Math.round(weighted * 100);
  const words = supporting === sources ? `All ${sources} sources that take a side support this answer.`
    : `${supporting} of ${sources} sources that take a side support this answer (${share}% if stronger study designs count more).`;
  return make("p", { className: "note", textContent: words });
}

/** Return both sides next to each other; `cite(pmid, text, against)` returns a citation link. */
export function sidesView(answer, cite) {
  const sides = quotedSides(answer);
  if (!sides) return null;
  const on = sides.con[0].stance_on || sides.pro[0]?.stance_on || "";
  const brief = on.length <= BADGE_CHARACTERS;
  const column = (items, word, against) => make("section", { className: against ? "side con" : "side pro" },
    make("h3", { textContent: on && brief ? `${word} “${on}” (${items.length})` : `${word} (${items.length})` }),
    items.length ? make("ul", {}, ...items.map(({ passage }) => make("li", {},
      make("q", { textContent: shortened(passage.text, QUOTE_CHARACTERS) }), " ", cite(passage.pmid, passage.text, against))))
      : make("p", { className: "note", textContent: "No passage that was found." }));
  return make("details", { className: "sides", open: answer.verdict === "mixed" },
    make("summary", { textContent: `For and against (${sides.pro.length} for, ${sides.con.length} against)` }),
    brief ? null : make("p", { className: "note" }, "What is supported or contradicted: ", make("q", { textContent: shortened(on, QUOTE_CHARACTERS) })),
    make("div", { className: "two" }, column(sides.pro, "Supports", false), column(sides.con, "Contradicts", true)));
}
