// One question put to several systems at once, their answers side by side.

import { askInEvents } from "./api.js";
import { answerCard, timingsOf } from "./answer_view.js";
import { byId, make } from "./dom.js";

// As many as the variants of one paper that are compared in it.
const MOST = 7;
let running = null;

const chosen = () => [...document.querySelectorAll("#compare-systems input:checked")].map((box) => box.value);

function limit() {
  const full = chosen().length >= MOST;
  for (const box of document.querySelectorAll("#compare-systems input")) box.disabled = full && !box.checked;
}

export function offerSystems(systems) {
  byId("compare-systems").replaceChildren(...systems.map(({ id, description }) => make("label", { title: description },
    make("input", { type: "checkbox", value: id, checked: id === "citeray" || id === "hybrid", onchange: limit }), ` ${id}`)));
}

/** What to say beside a PMID that other answers cite too. */
function alsoCited(answers, own) {
  const cited = new Map(Object.entries(answers).map(([system, answer]) =>
    [system, new Set(answer.ideal.flatMap((sentence) => sentence.pmids))]));
  return (pmid) => {
    const others = [...cited].filter(([system, pmids]) => system !== own && pmids.has(pmid)).map(([system]) => system);
    return others.length ? ` (also ${others.join(", ")})` : "";
  };
}

async function compare(event) {
  event.preventDefault();
  running?.abort();
  const own = running = new AbortController();
  const question = byId("compare-question").value;
  const systems = chosen();
  const answers = {};
  const shown = Object.fromEntries(systems.map((system) => [system, make("div", {}, make("div", { className: "card", textContent: `${system}: searching` }))]));
  byId("columns").replaceChildren(...Object.values(shown));
  byId("compare-cancel").hidden = false;
  const one = async (system) => {
    try {
      answers[system] = await askInEvents({ question, system }, () => {}, own.signal);
      for (const [name, answer] of Object.entries(answers)) {
        shown[name].replaceChildren(answerCard(answer, name, alsoCited(answers, name)), timingsOf(answer));
      }
    } catch (error) {
      const said = error.name === "AbortError" ? "cancelled" : error.message;
      shown[system].replaceChildren(make("div", { className: "card problem", textContent: `${system}: ${said}` }));
    }
    byId("compare-progress").textContent = `${Object.keys(answers).length} of ${systems.length} have answered`;
  };
  await Promise.all(systems.map(one));
  if (running === own) byId("compare-cancel").hidden = true;
}

export function readyCompareTab() {
  byId("compare-form").addEventListener("submit", compare);
  byId("compare-cancel").addEventListener("click", () => running?.abort());
}
