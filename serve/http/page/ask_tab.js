// The Ask tab: progress, draft and answer of a question, and its URL in the browser's history.

import { addressOf, answerAddress, answerIn, isStrategy, requestIn, standing } from "./address.js";
import { answerView, partView } from "./answer_view.js";
import { askInEvents } from "./api.js";
import { button, byId, copy, linkTo, make, pubmedAddress, say, showProblem, when } from "./dom.js";
import { chosenFilters, readyFilters, setFilters } from "./filters.js";
import { fold, offerExamples } from "./first_screen.js";
import { feedbackRow } from "./feedback.js";
import { forget, recall, remember, showHistory } from "./history.js";
import { foundEarly } from "./references.js";
import { watchButton } from "./saved_tab.js";
import { readStored, storeButton } from "./stored_answers.js";
import { readySuggestions, suggestKey } from "./suggest_box.js";
import { choose } from "./systems.js";
import { showThread } from "./thread.js";
import { exactNames } from "./verdict_view.js";

const MOST_TURNS = 5;
const TURN_CHARACTERS = 1000;
let running = null;
let shown = null;
let opened = "";

function readForm() {
  const system = byId("system").value;
  return {
    question: byId("question").value.trim(), type: byId("type").value, k: Number(byId("k").value) || 10,
    ...(system ? { system } : {}), filters: chosenFilters(),
  };
}

function writeForm(request) {
  byId("question").value = request?.question ?? "";
  byId("type").value = request?.type ?? "unknown";
  byId("k").value = request?.k ?? 10;
  choose(request?.system);
  setFilters(request?.filters ?? {});
}

function clear() {
  running?.abort();
  running = null;
  busy(false);
  for (const place of ["answer", "problem", "draft-text", "progress", "early"]) byId(place).replaceChildren();
  byId("draft").hidden = true;
  byId("early").hidden = true;
  byId("progress").classList.remove("sr");
  byId("follow-form").hidden = true;
  showThread([]);
  shown = null;
  document.title = "CiteRay: cited answers from PubMed";
}

/** Show an answer, its request, and the turns of the conversation before it. */
function show({ at, request, answer, created, thread = [] }) {
  clear();
  writeForm(request);
  showThread(thread);
  shown = { at, request, answer, thread };
  document.title = `CiteRay: ${request.question}`;
  document.body.classList.add("asked");
  const kept = (written) => keep(request, written, thread);
  const actions = [button("Copy link", () => copy(location.href, "Link")), storeButton(request, answer, kept), watchButton(request)];
  const opinion = feedbackRow(request, answer, kept);
  const correct = (question) => ask({ ...request, question }, { thread });
  const change = (question) => ask({ ...request, question, type: "unknown", turns: [] }, { thread });
  byId("answer").replaceChildren(...answerView(answer, { actions, opinion, correct, change }));
  // The answer is visible below; only screen readers need the announcement.
  byId("progress").classList.toggle("sr", !created);
  byId("progress").textContent = created ? `A stored answer of ${when(created)}.` : "Done.";
  byId("answer").focus({ preventScroll: true });
  byId("follow-form").hidden = false;
  byId("follow").value = "";
}

/** Store an answer with the earlier questions, set its URL, and show it. */
function keep(request, answer, thread) {
  const at = remember(request, answer, thread.at(-1)?.at);
  const address = answer.answer_id ? answerAddress(answer.answer_id) : addressOf(standing(request, answer));
  history.replaceState({ at }, "", address);
  opened = location.search;
  showHistory(again);
  show({ at, request, answer, thread });
}

function tell(name, data) {
  if (name === "evidence" && data.citations.length) {
    byId("early").hidden = false;
    byId("early").replaceChildren(...foundEarly(data));
    byId("progress").textContent = "Writing the answer";
  }
  if (name === "draft") {
    byId("draft").hidden = false;
    byId("draft-text").textContent += data.text;
  }
  if (name === "part") {
    byId("draft").hidden = true;
    byId("draft-text").replaceChildren();
    if (data.number === 1) byId("answer").replaceChildren(make("div", { className: "card answer" }));
    byId("answer").firstChild.append(partView(data.answer, (pmid) => linkTo(pubmedAddress(pmid), ` [PMID ${pmid}]`)));
    byId("progress").textContent = `Part ${data.number} of ${data.of} is answered.`;
  }
}

function busy(is) {
  byId("ask").disabled = is;
  byId("cancel").hidden = !is;
}

/** Send `request` and show its answer; with `push`, add an entry to the browser's history. */
async function ask(request, { push = true, thread = [] } = {}) {
  clear();
  writeForm(request);
  showThread(thread);
  document.body.classList.add("asked");
  if (push) history.pushState({}, "", addressOf(request));
  opened = location.search;
  const own = running = new AbortController();
  byId("progress").textContent = "Searching";
  busy(true);
  try {
    const answer = await askInEvents(request, tell, own.signal);
    if (running === own) keep(request, answer, thread);
  } catch (error) {
    if (running !== own) return;
    byId("draft").hidden = true;
    byId("early").hidden = true;
    byId("progress").textContent = error.name === "AbortError" ? "Cancelled." : "";
    if (error.name !== "AbortError") {
      showProblem(byId("problem"), error.message);
      fold(true);
    }
  } finally {
    if (running === own) busy(false);
  }
}

/** Show an earlier question, as a new entry of the browser's history. */
function again(entry) {
  history.pushState({ at: entry.at }, "", addressOf(standing(entry.request, entry.answer)));
  opened = location.search;
  show(entry);
}

/** Return the last turns of the conversation, of which the shown answer is the newest. */
function turnsSoFar() {
  const { request, answer } = shown;
  const said = [...exactNames(answer), ...answer.ideal.map(({ text }) => text)].join(" ").slice(0, TURN_CHARACTERS);
  return [...(request.turns ?? []), { question: request.question, answer: said }].slice(-MOST_TURNS);
}

function follow(event) {
  event.preventDefault();
  const question = byId("follow").value.trim();
  if (!question || !shown) return;
  const { at, request, answer, thread } = shown;
  ask({ ...request, question, type: "unknown", turns: turnsSoFar() }, { thread: [...thread, { at, request, answer }].slice(-MOST_TURNS) });
}

/**
 * Show what the URL names: a stored answer, a question, or the first screen. A question is asked
 * immediately, as on PubMed: a shared link should lead to its result, and asking changes nothing on
 * the server. Back and Forward (`back`) show earlier answers without asking again.
 */
async function open({ back }) {
  opened = location.search;
  const kept = back ? recall(history.state?.at) : null;
  const stored = answerIn(location.search);
  const request = requestIn(location.search);
  if (kept) return show(kept);
  if (stored) {
    clear();
    try {
      return await show(await readStored(stored));
    } catch (error) {
      return showProblem(byId("problem"), error.message);
    }
  }
  if (request && isStrategy(location.search)) {
    writeForm(request);
    return byId("tab-strategy").click();
  }
  if (request) return ask(request, { push: false });
  clear();
  writeForm(null);
  document.body.classList.remove("asked");
  return byId("question").focus();
}

const submitOnEnter = (form) => (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId(form).requestSubmit();
};

/** Show what the URL names; called again when an API key is entered. */
export function openAddress() {
  const { type } = performance.getEntriesByType("navigation")[0] ?? {};
  open({ back: type === "back_forward" });
}

export function readyAskTab() {
  readyFilters();
  readySuggestions();
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(readForm());
  });
  byId("follow-form").addEventListener("submit", follow);
  byId("cancel").addEventListener("click", () => running?.abort());
  byId("question").addEventListener("keydown", (event) => suggestKey(event) || submitOnEnter("ask-form")(event));
  byId("follow").addEventListener("keydown", submitOnEnter("follow-form"));
  byId("clear-history").addEventListener("click", () => {
    forget();
    showHistory(again);
    say("Earlier questions cleared.");
  });
  addEventListener("popstate", ({ state }) => {
    // Ignore links within the page, which do not change the question.
    if (state !== null || location.search !== opened) open({ back: true });
  });
  showHistory(again);
  offerExamples((question, type) => ask({ ...readForm(), question, type: type ?? "unknown" }));
}
