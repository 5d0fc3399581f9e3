// Batches of questions: started here, worked on by the server, fetched when they are done.

import { cancelBatch, readBatch, readRun, startBatch } from "./api.js";
import { byId, make, showProblem } from "./dom.js";

const PLACE = "citeray-batches";
const EVERY_MS = 2000;
const ENDED = new Set(["done", "cancelled", "failed"]);

const known = () => JSON.parse(localStorage.getItem(PLACE) ?? "[]");
const keep = (entries) => localStorage.setItem(PLACE, JSON.stringify(entries.slice(0, 50)));

async function start(event) {
  event.preventDefault();
  showProblem(byId("batch-problem"), "");
  const file = byId("batch-file").files[0];
  try {
    const { questions } = JSON.parse(await file.text());
    if (!Array.isArray(questions)) throw new SyntaxError("no list of questions");
    const system = byId("batch-system").value;
    const job = await startBatch({ questions, answers: byId("batch-answers").checked, ...(system ? { system } : {}) });
    keep([{ id: job.id, name: file.name }, ...known()]);
    show(job.id, file.name, true);
  } catch (error) {
    const said = error instanceof SyntaxError ? `${file.name} is no BioASQ file: ${error.message}` : error.message;
    showProblem(byId("batch-problem"), said);
  }
}

function show(id, name, first) {
  const bar = make("progress", { value: 0, max: 1, "aria-label": `Progress of ${name}` });
  const state = make("p", { className: "note", role: "status" });
  const buttons = make("div", { className: "row" });
  const item = make("li", { className: "card" }, make("h2", { textContent: name }), bar, state, buttons);
  byId("batches")[first ? "prepend" : "append"](item);
  watch({ id, name, bar, state, buttons, item });
}

async function watch(shown) {
  const { id, bar, state } = shown;
  try {
    const job = await readBatch(id);
    bar.max = job.total || 1;
    bar.value = job.done;
    const failed = job.failed_count ?? 0;
    const losses = Object.values(job.degraded ?? {}).reduce((sum, count) => sum + count, 0);
    const unanswered = job.verdicts?.not_enough_evidence ?? 0;
    state.textContent = [`${job.state}: ${job.done} of ${job.total}`, failed ? `${failed} failed` : "",
      unanswered ? `${unanswered} without enough evidence` : "",
      losses ? `${losses} losses` : "", job.error ?? ""].filter(Boolean).join(", ");
    offer(shown, job.state);
    if (!ENDED.has(job.state)) setTimeout(watch, EVERY_MS, shown);
  } catch (error) {
    state.textContent = error.message;
    offer(shown, error.status === 404 ? "gone" : "unknown");
  }
}

function offer(shown, state) {
  const button = (textContent, onclick) => make("button", { type: "button", className: "quiet", textContent, onclick });
  const { id, name } = shown;
  const buttons = [];
  if (state === "running" || state === "waiting") buttons.push(button("Cancel", () => cancelBatch(id).then(() => watch(shown))));
  if (state === "done") buttons.push(button("Download the run", () => download(id, name)));
  if (ENDED.has(state) || state === "gone") buttons.push(button("Forget", () => {
    keep(known().filter((entry) => entry.id !== id));
    shown.item.remove();
  }));
  shown.buttons.replaceChildren(...buttons);
}

async function download(id, name) {
  const url = URL.createObjectURL(await readRun(id));
  make("a", { href: url, download: `run-${name}` }).click();
  URL.revokeObjectURL(url);
}

export function readyBatchTab() {
  byId("batch-form").addEventListener("submit", start);
  for (const { id, name } of known()) show(id, name, false);
}
