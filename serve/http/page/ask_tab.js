// One question: its stages, the draft, the checked answer.

import { askInEvents } from "./api.js";
import { answerView } from "./answer_view.js";
import { byId, showProblem } from "./dom.js";
import { chosenFilters, readyFilters } from "./filters.js";
import { forget, remember, showHistory } from "./history.js";

let running = null;

function show(answer) {
  byId("draft").hidden = true;
  byId("answer").replaceChildren(...answerView(answer));
  byId("answer").focus({ preventScroll: true });
}

function tell(name, data) {
  if (name === "stage") byId("progress").textContent = `${data.stage} done, ${Math.round(data.ms)} ms`;
  if (name === "evidence") byId("progress").textContent = `${data.evidence.length} passages found; writing the answer`;
  if (name === "draft") {
    byId("draft").hidden = false;
    byId("draft-text").textContent += data.text;
  }
}

function busy(is) {
  byId("ask").disabled = is;
  byId("cancel").hidden = !is;
}

async function ask(event) {
  event.preventDefault();
  running?.abort();
  const own = running = new AbortController();
  const system = byId("system").value;
  const request = {
    question: byId("question").value, type: byId("type").value, k: Number(byId("k").value) || 10,
    ...(system ? { system } : {}), filters: chosenFilters(),
  };
  for (const place of ["answer", "problem", "draft-text"]) byId(place).replaceChildren();
  byId("draft").hidden = true;
  byId("progress").textContent = "searching";
  busy(true);
  try {
    const answer = await askInEvents(request, tell, own.signal);
    show(answer);
    byId("progress").textContent = "The answer is there.";
    remember(answer);
    showHistory(show);
  } catch (error) {
    byId("draft").hidden = true;
    byId("progress").textContent = error.name === "AbortError" ? "Cancelled." : "";
    if (error.name !== "AbortError") showProblem(byId("problem"), error.message);
  } finally {
    if (running === own) busy(false);
  }
}

export function readyAskTab() {
  readyFilters();
  byId("ask-form").addEventListener("submit", ask);
  byId("cancel").addEventListener("click", () => running?.abort());
  byId("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      byId("ask-form").requestSubmit();
    }
  });
  byId("clear-history").addEventListener("click", () => { forget(); showHistory(show); });
  showHistory(show);
}
