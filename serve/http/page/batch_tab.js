// The Batch tab: start batches, follow their progress and read their answers.

import { cancelBatch, readBatch, readBatchFile, startBatch } from "./api.js";
import { BatchResults, saveTable } from "./batch_results.js";
import { button, byId, make, save, showProblem } from "./dom.js";
import { chosenFilters } from "./filters.js";

const PLACE = "citeray-batches";
const EVERY_MS = 1000;
const MOST_KEPT = 50;
// Downloads of a batch: title, route and ending.
const FILES = [["Answers in Word (DOCX)", "document", "docx"], ["References (RIS)", "references", "ris"], ["Run file (JSON)", "run", "json"]];
const ENDED = new Set(["done", "cancelled", "failed"]);

const known = () => JSON.parse(localStorage.getItem(PLACE) ?? "[]");
const keep = (entries) => localStorage.setItem(PLACE, JSON.stringify(entries.slice(0, MOST_KEPT)));

/** Return the questions of the file, or those typed one per line. */
async function questionsGiven() {
  const file = byId("batch-file").files[0];
  const { questionsInFile, questionsInLines } = await import("./question_files.js");
  if (file) return { name: file.name, questions: await questionsInFile(file) };
  const questions = questionsInLines(byId("batch-lines").value);
  if (!questions.length) throw new Error("Write a question on each line, or choose a file.");
  const [{ body }, ...others] = questions;
  return { name: others.length ? `${body} and ${others.length} more` : body, questions };
}

async function start(event) {
  event.preventDefault();
  showProblem(byId("batch-problem"), "");
  try {
    const { name, questions } = await questionsGiven();
    const system = byId("batch-system").value;
    const answers = byId("batch-answers").checked;
    const job = await startBatch({ questions, answers, filters: chosenFilters(), ...(system ? { system } : {}) });
    keep([{ id: job.id, name }, ...known()]);
    show(job.id, name, true, Object.fromEntries(questions.map((question) => [question.id, question.body])));
  } catch (error) {
    showProblem(byId("batch-problem"), error.message);
  }
}

function show(id, name, first, bodies) {
  const bar = make("progress", { value: 0, max: 1, "aria-label": `Progress of ${name}` });
  const state = make("p", { className: "note", role: "status" });
  const buttons = make("div", { className: "row" });
  const results = new BatchResults(id, bodies);
  const item = make("li", { className: "card" }, make("h2", { textContent: name }), bar, state, buttons, results.element);
  byId("batches")[first ? "prepend" : "append"](item);
  watch({ id, name, bar, state, buttons, results, item });
}

function inWords(job) {
  const losses = Object.values(job.degraded ?? {}).reduce((sum, count) => sum + count, 0);
  const unanswered = job.verdicts?.not_enough_evidence ?? 0;
  const left = job.eta_s ? `about ${Math.ceil(job.eta_s)} s left` : "";
  return [`${job.state}: ${job.done} of ${job.total}`, job.failed_count ? `${job.failed_count} failed` : "",
    unanswered ? `${unanswered} without enough evidence` : "", losses ? "some answers may be incomplete" : "", left, job.error ?? ""].filter(Boolean).join(", ");
}

async function watch(shown) {
  const { id, bar, state, results } = shown;
  try {
    const job = await readBatch(id);
    bar.max = job.total || 1;
    bar.value = job.done + job.failed_count;
    state.textContent = inWords(job);
    results.fail(job.failed);
    await (job.state === "done" ? results.settle() : results.more());
    offer(shown, job.state);
    if (!ENDED.has(job.state)) setTimeout(watch, EVERY_MS, shown);
  } catch (error) {
    state.textContent = error.message;
    offer(shown, error.status === 404 ? "gone" : "unknown");
  }
}

function offer(shown, state) {
  const { id, name } = shown;
  const buttons = [];
  if (state === "running" || state === "waiting") buttons.push(button("Cancel", async () => {
    await cancelBatch(id);
    await watch(shown);
  }));
  if (state === "done") {
    const plain = name.replace(/\.\w+$/u, "");
    buttons.push(button("Answers as a table (CSV)", () => saveTable(id, plain)),
      ...FILES.map(([title, path, ending]) => button(title, async () => save(await readBatchFile(id, path), `${plain}.${ending}`))));
  }
  if (ENDED.has(state) || state === "gone") buttons.push(button("Remove", () => forget(shown)));
  shown.buttons.replaceChildren(...buttons);
}

async function forget({ id, item }) {
  keep(known().filter((entry) => entry.id !== id));
  item.remove();
}

/** Show the filters, which all questions share, on the tab that is open. */
function readyFiltersHere() {
  const places = ["chips", "filters"].map((id) => [byId(id), byId(id).parentNode, byId(id).nextSibling]);
  byId("tab-batch").addEventListener("click", () => byId("batch-filters").append(...places.map(([element]) => element)));
  byId("tab-ask").addEventListener("click", () => places.forEach(([element, parent, next]) => parent.insertBefore(element, next)));
}

export function readyBatchTab() {
  readyFiltersHere();
  byId("batch-form").addEventListener("submit", start);
  for (const { id, name } of known()) show(id, name, false);
}
