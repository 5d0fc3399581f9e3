// The Compare tab: one question to several presets, with their answers and a table of differences.

import { askInEvents } from "./api.js";
import { paragraphOf } from "./answer_view.js";
import { citeLink } from "./cite_hint.js";
import { lossFold } from "./details_view.js";
import { byId, make, shortened } from "./dom.js";
import { openPassage } from "./passage_dialog.js";
import { citedIn, isUnanswered, readReferences, referenceList, shownTitle, stubOf } from "./references.js";
import { titleOf } from "./systems.js";
import { agreementWords, exactNames, verdictView } from "./verdict_view.js";

// Maximum number of presets to compare: the most variants that a published paper compares.
const MOST = 7;
const TITLE_CHARACTERS = 90;
const VERDICTS = { answered: "Answered", mixed: "Sources disagree", not_enough_evidence: "Not enough evidence" };
let running = null;

const boxes = () => [...document.querySelectorAll("#compare-systems input")];
const chosen = () => boxes().filter((box) => box.checked).map((box) => box.value);

function limit() {
  const full = chosen().length >= MOST;
  for (const box of boxes()) box.disabled = full && !box.checked;
}

function shortOf(answer) {
  if (isUnanswered(answer)) return "";
  const agreed = answer.verdict === "mixed" ? agreementWords(answer) : "";
  return shortened([...exactNames(answer), agreed].filter(Boolean).join("; "), TITLE_CHARACTERS);
}

const secondsOf = ({ spent }) => (spent ? `${(spent.ms / 1000).toFixed(1)} s` : "");

/** Return a table row; marks the cells that differ from the most frequent one. */
function wordRow(title, words) {
  const counts = words.reduce((all, word) => all.set(word, (all.get(word) ?? 0) + 1), new Map());
  const [most] = [...counts].sort(([, one], [, other]) => other - one)[0];
  return make("tr", {}, make("th", { scope: "row", textContent: title }), ...words.map((word) => {
    const odd = counts.size > 1 && word !== most;
    return make("td", { className: odd ? "odd" : "" }, word || "none", odd ? make("span", { className: "sr", textContent: " (differs)" }) : "");
  }));
}

function citationRow(pmid, n, answers, reference) {
  const cells = answers.map((answer) => {
    const rank = answer.citations.findIndex((citation) => citation.pmid === pmid) + 1;
    if (citedIn(answer).includes(pmid) && !isUnanswered(answer)) return ["cited", "cites", ""];
    return rank ? ["found", `ranked ${rank}`, ""] : ["", "not found", "none"];
  });
  const same = cells.every(([kind]) => kind === cells[0][0]);
  const cited = stubOf(answers.find((answer) => [...answer.citations, ...answer.evidence.map(({ passage }) => passage)].some((one) => one.pmid === pmid)), pmid);
  return make("tr", { className: same ? "" : "differs" },
    make("th", { scope: "row" }, reference(pmid, n), ` ${shortened(shownTitle(cited), TITLE_CHARACTERS)}${cited.year ? ` (${cited.year})` : ""}`),
    ...cells.map(([kind, words]) => make("td", { className: kind || "absent", textContent: words })));
}

function tableOf(entries, pmids, reference) {
  const answers = entries.map(([, answer]) => answer);
  return make("div", { className: "scroll", role: "region", tabIndex: 0, "aria-label": "What the methods answer and cite" },
    make("table", { className: "compared" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col", textContent: "Compared" }),
        ...entries.map(([name]) => make("th", { scope: "col", textContent: titleOf(name) })))),
      make("tbody", {},
        wordRow("Verdict", answers.map(({ verdict }) => VERDICTS[verdict] ?? verdict)),
        wordRow("Short answer", answers.map(shortOf)),
        make("tr", {}, make("th", { scope: "row", textContent: "Time" }), ...answers.map((answer) => make("td", { textContent: secondsOf(answer) }))),
        ...pmids.map((pmid, at) => citationRow(pmid, at + 1, answers, reference)))));
}

function cardOf(name, answer, cite) {
  return make("article", { className: "card", "aria-label": name }, make("h2", { textContent: titleOf(name) }),
    verdictView(answer), paragraphOf(answer, cite), lossFold(answer));
}

/** Return the table, the answers, and their common reference list. */
function show(answers, systems) {
  const entries = systems.filter((name) => answers[name]).map((name) => [name, answers[name]]);
  if (!entries.length) return;
  const pmids = [...new Set(entries.flatMap(([, answer]) => (isUnanswered(answer) ? [] : citedIn(answer))))];
  const idOf = (pmid) => `compared-ref-${pmids.indexOf(pmid) + 1}`;
  const holder = (pmid) => entries.find(([, answer]) => answer.evidence.some(({ passage }) => passage.pmid === pmid))?.[1] ?? entries[0][1];
  const citeIn = (answer) => (pmid, said, against) => citeLink(answer, { n: pmids.indexOf(pmid) + 1, pmid, said, target: idOf(pmid), against });
  const reference = (pmid, n) => citeLink(holder(pmid), { n, pmid, said: holder(pmid).question.body, target: idOf(pmid) });
  const passage = (pmid) => make("button", {
    type: "button", className: "link", textContent: "Read the passage", "aria-label": `Read the passage of reference ${pmids.indexOf(pmid) + 1}`,
    onclick: () => openPassage(holder(pmid), pmid, holder(pmid).question.body),
  });
  byId("compared").replaceChildren(tableOf(entries, pmids, reference),
    make("div", { className: "columns" }, ...entries.map(([name, answer]) => cardOf(name, answer, citeIn(answer)))),
    make("section", { className: "card", "aria-label": "References" }, referenceList(pmids, readReferences(pmids), { title: "References of all answers", idOf, stub: (pmid) => stubOf(holder(pmid), pmid), passage }) ?? "No answer cites anything."));
}

async function compare(event) {
  event.preventDefault();
  running?.abort();
  const own = running = new AbortController();
  const question = byId("compare-question").value;
  const systems = chosen();
  if (!systems.length) {
    byId("compare-progress").textContent = "Choose a method to compare.";
    return;
  }
  const answers = {};
  let ended = 0;
  byId("compared").replaceChildren();
  byId("compare-problems").replaceChildren();
  byId("compare-methods").open = false;
  byId("compare-cancel").hidden = false;
  byId("compare-progress").textContent = `Asking ${systems.length} methods`;
  const one = async (system) => {
    try {
      answers[system] = await askInEvents({ question, system }, () => {}, own.signal);
    } catch (error) {
      if (running !== own) return;
      const said = error.name === "AbortError" ? "cancelled" : error.message;
      byId("compare-problems").append(make("p", { className: "problem", textContent: `${titleOf(system)}: ${said}` }));
    }
    if (running !== own) return;
    ended += 1;
    show(answers, systems);
    byId("compare-progress").textContent = `${Object.keys(answers).length} of ${systems.length} have answered`;
    if (ended === systems.length) byId("compare-cancel").hidden = true;
  };
  await Promise.all(systems.map(one));
}

export function readyCompareTab() {
  byId("compare-form").addEventListener("submit", compare);
  byId("compare-cancel").addEventListener("click", () => running?.abort());
  byId("compare-systems").addEventListener("change", limit);
}
