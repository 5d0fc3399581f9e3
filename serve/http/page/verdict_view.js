// The verdict on an answer in plain words, and its sources for and against.

import { make, shortened } from "./dom.js";

const STANCES = { support: "supports", contradict: "contradicts" };
const MOST_A_SIDE = 5;
const QUOTE_CHARACTERS = 400;
const BADGE_CHARACTERS = 60;

export const isUnanswered = (answer) => answer.verdict === "not_enough_evidence";

/** A yes or no is not stated on its own where sources disagree. */
export const statesExact = (answer) => !(answer.verdict === "mixed" && typeof answer.exact === "string");

/** [title, sentence] of a verdict other than answered; null for answered. */
export function verdictWords(answer) {
  if (isUnanswered(answer)) {
    if (answer.filtered_out) return ["The filters leave no article", answer.filtered_out];
    const sources = answer.question.given?.length ? "the given passages" : "the articles that it found";
    return ["Not enough evidence", `CiteRay could not decide this from ${sources}.`];
  }
  if (answer.verdict !== "mixed") return null;
  return ["Sources disagree", typeof answer.exact === "string" ? `The evidence leans to ${answer.exact}.` : ""];
}

/** The banner of such a verdict; null for none. */
export function verdictBanner(answer) {
  const words = verdictWords(answer);
  if (!words) return null;
  return make("div", { className: isUnanswered(answer) ? "verdict unanswered" : "verdict mixed" },
    make("p", { className: "verdict-title", textContent: words[0] }),
    words[1] ? make("p", { textContent: words[1] }) : null);
}

/** The exact answer in words: "Yes", or its names with their synonyms; [] for none. */
export function exactNames(answer) {
  const { exact } = answer;
  if (!exact?.length || !statesExact(answer)) return [];
  if (typeof exact === "string") return [exact === "yes" ? "Yes" : exact === "no" ? "No" : exact];
  return exact.map(([first, ...others]) => (others.length ? `${first} (${others.join("; ")})` : first));
}

/** The stance and what it is towards ("supports: yes"); "" where nothing is stated. */
export function stanceBadge({ stance, stance_on: on }) {
  if (stance === "unknown") return "";
  const named = STANCES[stance];
  if (!named) return make("span", { className: "stance none", textContent: "neither" });
  const text = on ? `${named}: ${shortened(on, BADGE_CHARACTERS)}` : named;
  return make("span", { className: `stance ${named}`, textContent: text, title: on ?? "" });
}

const onSide = (answer, stance) => answer.evidence.filter((item) => item.stance === stance);

/** The passages that both sides quote, for where there is anything against. */
export function quotedSides(answer) {
  const [pro, con] = ["support", "contradict"].map((stance) => onSide(answer, stance));
  return con.length && !isUnanswered(answer) ? { pro: pro.slice(0, MOST_A_SIDE), con: con.slice(0, MOST_A_SIDE) } : null;
}

/** How far several sources agree, as the command line says it; null for fewer. */
export function agreementLine({ agreement }) {
  const { sources = 0, supporting, weighted } = agreement ?? {};
  if (sources < 2) return null;
  const share = Math.round(weighted * 100);
  const words = supporting === sources ? `All ${sources} sources that take a side support this answer.`
    : `${supporting} of ${sources} sources that take a side support this answer (${share}% if stronger study designs count more).`;
  return make("p", { className: "note", textContent: words });
}

/** Both sides beside each other; `cite(pmid, said, against)` makes the number of a source. */
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
