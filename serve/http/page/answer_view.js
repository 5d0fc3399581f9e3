// An Answer (the reply of /v1/answer) as elements.

import { make } from "./dom.js";
import { filtersInWords } from "./filters.js";
import { openPassage } from "./passage_dialog.js";
import { isUnanswered, stanceBadge, statesExact, verdictBanner } from "./verdict_view.js";

const heading = (text, level = "h2") => make(level, { textContent: text });

function pmidButton(answer, pmid, said, against = false, also = "") {
  const words = `${against ? "Against: " : ""}PMID ${pmid}${also}`;
  return make("button", {
    type: "button", className: against ? "pmid against" : "pmid", textContent: words,
    onclick: () => openPassage(answer, pmid, said),
  });
}

function exactOf(exact) {
  if (!exact || !exact.length) return null;
  if (typeof exact === "string") return make("p", { className: "exact", textContent: exact === "yes" ? "Yes" : exact === "no" ? "No" : exact });
  const names = exact.map(([first, ...others]) =>
    make("li", {}, first, others.length ? make("span", { className: "hint", textContent: ` (${others.join("; ")})` }) : ""));
  return make("div", { className: "exact" }, make("ol", {}, ...names));
}

function sentencesOf(answer, also) {
  if (isUnanswered(answer)) return null;
  if (!answer.ideal.length) return make("p", { textContent: "Nothing found speaks to this question." });
  return make("ul", { className: "sentences" }, ...answer.ideal.map((sentence) => make("li", {},
    `${sentence.text} `,
    sentence.unsupported ? make("strong", { className: "lost", textContent: "No evidence supports this. " }) : "",
    ...sentence.pmids.map((pmid) => pmidButton(answer, pmid, sentence.text, false, also(pmid))),
    ...sentence.contradicted.map((pmid) => pmidButton(answer, pmid, sentence.text, true)))));
}

const ORIGINS = {
  generated: "Written by the language model, each sentence checked against the evidence.",
  extractive: "The evidence's own sentences.",
  none: "No answer was written.",
};

export function lossesOf(answer) {
  if (!answer.degraded.length) return null;
  const items = answer.degraded.map((loss) => make("li", { textContent: loss }));
  return make("div", { className: "note lost" }, "This answer had to do without:", make("ul", {}, ...items));
}

function originOf(answer) {
  const shown = answer.shown && answer.shown.length < answer.evidence.length
    ? `The model was shown ${answer.shown.length} of ${answer.evidence.length} passages.` : "";
  const parts = [ORIGINS[answer.origin], filtersInWords(answer.filters), shown, `Index ${answer.index_version}, to ${answer.last_source || "its first file"};`,
    `shards ${answer.coverage}; system ${answer.system}.`];
  return make("p", { className: "note", textContent: parts.filter(Boolean).join(" ") });
}

function evidenceOf(answer) {
  const items = answer.evidence.map(({ passage, title, stance, stance_on, year }) => {
    return make("li", {},
      stanceBadge({ stance, stance_on }),
      title ? make("strong", { textContent: `${title} ` }) : "", year ? `(${year}) ` : "",
      passage.text, " ", pmidButton(answer, passage.pmid, answer.ideal[0]?.text ?? answer.question.body));
  });
  return make("details", { className: "card" }, make("summary", { textContent: `Evidence (${items.length} ${items.length === 1 ? "passage" : "passages"})` }),
    make("ul", { className: "evidence" }, ...items));
}

function citationsOf(answer) {
  const items = answer.citations.map((citation) => make("li", {},
    citation.retracted ? make("strong", { className: "lost", textContent: "Retracted. " }) : "",
    citation.title || "", citation.year ? ` (${citation.year}) ` : " ", pmidButton(answer, citation.pmid, answer.question.body)));
  return make("details", { className: "card" }, make("summary", { textContent: `Citations (${items.length})` }),
    make("ol", {}, ...items));
}

export function timingsOf(answer) {
  const stages = Object.entries(answer.timings_ms);
  const most = Math.max(1, ...stages.map(([, ms]) => ms));
  const rows = stages.flatMap(([stage, ms]) => {
    const bar = make("div", { className: "bar" });
    bar.style.width = `${(ms / most) * 100}%`;
    return [make("span", { textContent: stage }), make("div", { className: "track", "aria-hidden": "true" }, bar),
      make("span", { className: "ms", textContent: `${Math.round(ms)} ms` })];
  });
  const whole = answer.spent ? `Time by stage (${Math.round(answer.spent.ms)} ms in all)` : "Time by stage";
  const rungs = answer.spent?.rungs.length ? make("p", { className: "note", textContent: `Searched: ${answer.spent.rungs.join(", then ")}.` }) : "";
  return make("details", { className: "card" }, make("summary", { textContent: whole }), make("div", { className: "bars" }, ...rows), rungs);
}

function entitiesOf(answer) {
  if (!answer.entities.length) return "";
  const items = answer.entities.map((entity) => make("li", { textContent: entity.text }));
  return make("details", { className: "card" }, make("summary", { textContent: `Entities in the question (${items.length})` }),
    make("ul", { className: "entities" }, ...items));
}

/** The answer alone; `also(pmid)` says what to add to a PMID. */
export function answerCard(answer, title, also = () => "") {
  return make("article", { className: "card", "aria-label": title }, heading(title),
    verdictBanner(answer, pmidButton), statesExact(answer) ? exactOf(answer.exact) : null,
    sentencesOf(answer, also), lossesOf(answer), originOf(answer));
}

/** All there is to show of an answer. */
export const answerView = (answer) => [answerCard(answer, "Answer"), evidenceOf(answer), citationsOf(answer),
  entitiesOf(answer), timingsOf(answer)].filter(Boolean);
