// The Details of an answer: evidence with scores, timings, versions, and missing parts.

import { counted, make } from "./dom.js";
import { filtersInWords } from "./filters.js";
import { openPassage } from "./passage_dialog.js";
import { titleOf } from "./systems.js";
import { stanceBadge } from "./verdict_view.js";

/** Return who wrote the text of a stated answer: as `origin_words` of the server. */
const originOf = ({ origin, written_by: name }) => (origin === "generated" ? `Written by the language model ${name ?? ""}`.trim()
  : origin === "extractive" ? "Quoted from the abstracts" : "No answer was written");

const heading = (textContent) => make("h3", { textContent });

/** Return a notice for the card if part of the system did not respond, otherwise null. */
export function lossLine(answer, details) {
  const [there, all] = answer.coverage.split("/").map(Number);
  const partly = there < all ? "A part of the index could not be searched. " : "";
  if (!answer.degraded.length) return partly ? make("p", { className: "note lost", textContent: partly }) : null;
  const see = make("button", {
    type: "button", className: "link", textContent: "See Details",
    onclick: () => {
      details.open = true;
      details.firstChild.focus();
    },
  });
  return make("p", { className: "note lost" }, `${partly}Part of the system did not respond, so this answer may be incomplete. `, see);
}

/** Return a notice that lists the missing parts, for a card without Details, otherwise null. */
export function lossFold({ degraded }) {
  if (!degraded.length) return null;
  return make("details", { className: "note" }, make("summary", { textContent: "This answer may be incomplete" }),
    make("ul", { className: "lost" }, ...degraded.map((loss) => make("li", { textContent: loss }))));
}

function facts(answer) {
  const shown = answer.shown && answer.shown.length < answer.evidence.length
    ? `The model was shown ${answer.shown.length} of ${answer.evidence.length} passages.` : "";
  const sure = Number.isFinite(answer.confidence) ? `Confidence ${answer.confidence.toFixed(2)}.` : "";
  const parts = [`${originOf(answer)}.`, sure, filtersInWords(answer.filters), shown,
    `Index ${answer.index_version}, to ${answer.last_source || "its first file"}; shards ${answer.coverage};`,
    `system ${answer.system} (${titleOf(answer.system)}).`];
  return make("p", { textContent: parts.filter(Boolean).join(" ") });
}

function losses(answer) {
  if (!answer.degraded.length) return [];
  return [heading("Why this answer may be incomplete"),
    make("ul", { className: "lost" }, ...answer.degraded.map((loss) => make("li", { textContent: loss })))];
}

const scoresOf = (scores) => Object.entries(scores).map(([stage, score]) => `${stage} ${score.toFixed(2)}`).join(", ");

function evidence(answer) {
  const said = answer.ideal[0]?.text ?? answer.question.body;
  const items = answer.evidence.map(({ passage, title, stance, stance_on: on, year, scores }) => make("li", {},
    stanceBadge({ stance, stance_on: on }),
    title ? make("strong", { textContent: `${title} ` }) : "", year ? `(${year}) ` : "", passage.text, " ",
    make("button", { type: "button", className: "pmid", textContent: `PMID ${passage.pmid}`, onclick: () => openPassage(answer, passage.pmid, said) }),
    scoresOf(scores ?? {}) ? make("span", { className: "hint", textContent: ` ${scoresOf(scores)}` }) : ""));
  return [heading(`Evidence (${counted(items.length, "passage")})`), make("ul", { className: "evidence" }, ...items)];
}

function timings(answer) {
  const stages = Object.entries(answer.timings_ms);
  const most = Math.max(1, ...stages.map(([, ms]) => ms));
  const rows = stages.flatMap(([stage, ms]) => {
    const bar = make("div", { className: "bar" });
    bar.style.width = `${(ms / most) * 100}%`;
    return [make("span", { textContent: stage }), make("div", { className: "track", "aria-hidden": "true" }, bar),
      make("span", { className: "ms", textContent: `${Math.round(ms)} ms` })];
  });
  const whole = answer.spent ? `Time by stage (${Math.round(answer.spent.ms)} ms in all)` : "Time by stage";
  const steps = answer.spent?.rungs.length ? make("p", { className: "note", textContent: `Searched: ${answer.spent.rungs.join(", then ")}.` }) : "";
  return [heading(whole), make("div", { className: "bars" }, ...rows), steps];
}

function entities(answer) {
  if (!answer.entities.length) return [];
  return [heading("Names found in the question"),
    make("ul", { className: "entities" }, ...answer.entities.map((entity) => make("li", { textContent: entity.text })))];
}

function candidates(answer) {
  const steps = Object.entries(answer.candidates ?? {});
  if (!steps.length) return [];
  return [heading("Number of citations after each step of the search"),
    make("p", { textContent: `${steps.map(([step, count]) => `${step} ${count}`).join(", ")}.` })];
}

/** Return the Details as a collapsed element. */
export const detailsView = (answer) => make("details", { className: "card details" },
  make("summary", { textContent: "Details: evidence, scores, timings, versions" }),
  facts(answer), ...losses(answer), ...evidence(answer), ...entities(answer), ...candidates(answer), ...timings(answer));
