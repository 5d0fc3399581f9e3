// The verdict of an answer: a chip, the number of studies for and against, and both sides.

import { make, shortened } from "./dom.js";
import { isUnanswered, quotedSides } from "./references.js";

const STANCES = { support: "supports", contradict: "contradicts" };
const BADGE_CHARACTERS = 60;
// As LOST_ANSWER, UNFINISHED and NOT_WRITTEN of the server (serve/wording/verdict_words.py).
const LOST_ANSWER = "evidence without an answer";
const UNFINISHED = "The answer was not finished in time. A longer serve.writer.deadline_s or serve.request_deadline_s helps.";
const NOT_WRITTEN = "The answer was not written, because the writer failed; see the server's log.";

/** Return true unless the exact answer is yes or no and the sources disagree. */
export const statesExact = (answer) => !(answer.verdict === "mixed" && typeof answer.exact === "string");

/** Return [title, sentence] of a verdict other than "answered", or null. */
function verdictWords(answer) {
  if (isUnanswered(answer)) {
    if (answer.filtered_out) return ["No article matches the filters", answer.filtered_out];
    if (answer.unrelated) return ["Nothing related found", "None of the articles found seems to be about this question."];
    const lost = answer.degraded?.find((loss) => loss.endsWith(LOST_ANSWER));
    if (lost) return lost.startsWith("write: late") ? ["Not finished in time", UNFINISHED] : ["Not written", NOT_WRITTEN];
    const sources = answer.question.given?.length ? "the given passages" : "the articles that it found";
    return ["Not enough evidence", `CiteRay could not decide this from ${sources}.`];
  }
  return answer.verdict === "mixed" ? ["Sources disagree", ""] : null;
}

/** Return how many studies agree, "6 of 8 studies say yes", or "": as `agreement_words` of the server. */
export function agreementWords({ agreement, exact }) {
  if (!agreement) return "";
  const { sources, supporting } = agreement;
  const who = sources === 1 && supporting ? "1 study" : supporting === sources ? `all ${sources} studies` : `${supporting} of ${sources} studies`;
  const ending = supporting === 1 ? "s" : "";
  return typeof exact === "string" ? `${who} say${ending} ${exact}` : `${who} support${ending} this answer`;
}

/** Return the exact answer as a list: ["Yes"], or names with synonyms; [] if there is none. */
export function exactNames(answer) {
  const { exact } = answer;
  if (!exact?.length || !statesExact(answer)) return [];
  if (typeof exact === "string") return [exact === "yes" ? "Yes" : exact === "no" ? "No" : exact];
  return exact.map(([first, ...others]) => (others.length ? `${first} (${others.join("; ")})` : first));
}

function exactView(answer) {
  const names = exactNames(answer);
  if (!names.length) return null;
  if (typeof answer.exact === "string") return make("p", { className: `exact badge ${answer.exact}`, textContent: names[0] });
  if (names.length === 1) return make("p", { className: "exact", textContent: names[0] });
  return make("div", { className: "exact" }, make("ol", {}, ...answer.exact.map(([first, ...others]) =>
    make("li", {}, first, others.length ? make("span", { className: "hint", textContent: ` (${others.join("; ")})` }) : ""))));
}

function meterView(answer) {
  const words = agreementWords(answer);
  if (!words) return null;
  const { sources, supporting } = answer.agreement;
  const bar = (className, count) => {
    const part = make("span", { className });
    part.style.flexGrow = count;
    return part;
  };
  return make("div", { className: "agreed" },
    make("span", { className: "meter", "aria-hidden": "true" }, bar("pro", supporting), bar("con", sources - supporting)),
    make("span", { textContent: `${words[0].toUpperCase()}${words.slice(1)}` }));
}

/** Return the verdict as elements in one block, or null if there is nothing to say. */
export function verdictView(answer) {
  const [title, sentence] = verdictWords(answer) ?? [];
  const parts = [
    title ? make("p", { className: "verdict-title badge", textContent: title }) : null, exactView(answer),
    isUnanswered(answer) ? null : meterView(answer), sentence ? make("p", { textContent: sentence }) : null,
  ].filter(Boolean);
  return parts.length ? make("div", { className: `verdict ${isUnanswered(answer) ? "unanswered" : answer.verdict ?? ""}` }, ...parts) : null;
}

/** Return the stance of a passage and its target ("supports: yes"), or "" if it is unknown. */
export function stanceBadge({ stance, stance_on: on }) {
  if (stance === "unknown") return "";
  const named = STANCES[stance];
  if (!named) return make("span", { className: "stance none", textContent: "neither" });
  const text = on ? `${named}: ${shortened(on, BADGE_CHARACTERS)}` : named;
  return make("span", { className: `stance ${named}`, textContent: text, title: on ?? "" });
}

/** Return both sides next to each other; `cite(pmid, text, against)` returns a citation link. */
export function sidesView(answer, cite) {
  const sides = quotedSides(answer);
  if (!sides || isUnanswered(answer)) return null;
  const { sources, supporting, weighted } = answer.agreement;
  const on = typeof answer.exact === "string" ? `“${answer.exact}”` : "this answer";
  const column = (items, count, word, against) => make("section", { className: against ? "side con" : "side pro" },
    make("h3", { textContent: `${word} ${on} (${count})` }),
    items.length ? make("ul", {}, ...items.map(({ pmid, sentence }) => make("li", {}, make("q", { textContent: sentence }), " ", cite(pmid, sentence, against))))
      : make("p", { className: "note", textContent: "None found." }),
    items.length < count ? make("p", { className: "note", textContent: `and ${count - items.length} more, see Details.` }) : null);
  return make("details", { className: "sides", open: answer.verdict === "mixed" },
    make("summary", { textContent: `For and against (${supporting} for, ${sources - supporting} against)` }),
    make("div", { className: "two" }, column(sides[0], supporting, "Supports", false), column(sides[1], sources - supporting, "Contradicts", true)),
    make("p", { className: "note", textContent: `Weighted by study design (trials count more than case reports): ${Math.round(weighted * 100)}% for this answer.` }));
}
