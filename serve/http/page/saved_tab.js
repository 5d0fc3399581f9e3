// The Saved tab: questions that are asked again after each index update, stored answers, and their changes.

import { addressOf, answerAddress } from "./address.js";
import { answerCard } from "./answer_view.js";
import { KEEPS, readJson, send } from "./api.js";
import { button, byId, make, say, showProblem, when } from "./dom.js";
import { choice } from "./systems.js";

const ROUTE = "/v1/watches";
const ANSWERS = "/v1/answers";
const MOST_ANSWERS = 20;
const MOST_OPENED = 3;
// Times of the changes that this browser has shown, by question.
const SEEN = "citeray-seen";
const VERDICTS = { answered: "answered", mixed: "sources disagree", not_enough_evidence: "not enough evidence" };
const one = (id) => `${ROUTE}/${encodeURIComponent(id)}`;

/** Return a button that saves the question, or "" if the server cannot save questions. */
export function watchButton(request) {
  if (!KEEPS) return "";
  return button("Watch this question", async (pressed) => {
    const { question, type, k, filters } = request;
    const system = choice(request.system);
    await send(ROUTE, { method: "POST", body: JSON.stringify({ question, type, k, filters, ...(system ? { system } : {}) }) });
    pressed.disabled = true;
    pressed.textContent = "Watched";
    say("It is asked again after each update; see Saved.");
  });
}

function checkView({ created, changes, index_version: version, diff }) {
  return make("li", {}, make("strong", { textContent: `${when(created)}, index ${version}` }),
    changes.length ? make("ul", {}, ...changes.map((textContent) => make("li", { textContent })))
      : make("p", { className: "note", textContent: diff ? "Nothing changed." : "Asked for the first time." }));
}

async function open(watch, place) {
  if (place.childElementCount) return place.replaceChildren();
  const { answer, history } = await readJson(one(watch.id));
  return place.replaceChildren(make("h3", { textContent: "What changed" }),
    make("ol", { className: "checks-made" }, ...history.map(checkView)),
    answer ? answerCard(answer, { address: location.origin + addressOf(watch.request) }) : make("p", { className: "note", textContent: "It has not been asked yet." }));
}

const changeMark = (textContent) => make("p", { className: "changed" }, make("strong", { textContent: "Changed: " }), textContent);

function watchView(watch) {
  const place = make("div");
  const state = watch.error || (watch.checked ? `asked ${when(watch.checked)} of index ${watch.index_version}` : "waiting to be asked");
  const item = make("li", { className: isNew(watch) ? "card new" : "card" }, make("h3", { textContent: watch.question }),
    watch.changes ? changeMark(`${watch.changes}, ${when(watch.changed)}`) : null,
    make("p", { className: "note", textContent: `Saved ${when(watch.created)}; ${state}.` }),
    make("div", { className: "row" }, button("Show changes and answer", () => open(watch, place)),
      make("a", { href: `${one(watch.id)}/feed`, textContent: "Feed" }),
      button("Remove", async () => {
        await send(one(watch.id), { method: "DELETE" });
        say("The question and its history were removed.");
        await listSaved();
      })), place);
  return { item, show: () => open(watch, place) };
}

const tab = byId("tab-saved");
/** Return whether a saved question changed since this browser last showed it. */
const isNew = ({ id, changed }) => changed && JSON.parse(localStorage.getItem(SEEN) ?? "{}")[id] !== changed;

/** Show the saved questions; open those that changed since this browser last showed them. */
async function listWatches() {
  const { watches } = await readJson(ROUTE);
  const views = watches.map(watchView);
  byId("watches").replaceChildren(...views.map(({ item }) => item));
  byId("no-watches").hidden = watches.length > 0;
  await Promise.all(views.filter((_, at) => isNew(watches[at])).slice(0, MOST_OPENED).map(({ show }) => show()));
  localStorage.setItem(SEEN, JSON.stringify(Object.fromEntries(watches.map(({ id, changed }) => [id, changed]))));
  tab.textContent = "Saved";
}

function answerView(kept) {
  const address = `${ANSWERS}/${encodeURIComponent(kept.id)}`;
  const mark = make("div");
  const check = async () => {
    try {
      const { changed } = await readJson(`${address}/changes`);
      if (changed) mark.replaceChildren(changeMark(`${changed} among its sources`));
    } catch (error) {
      mark.textContent = error.message;
    }
  };
  const item = make("li", { className: "card" }, make("h3", {}, make("a", { href: answerAddress(kept.id), textContent: kept.question })), mark,
    make("p", { className: "note", textContent: `Stored ${when(kept.created)}: ${VERDICTS[kept.verdict] ?? kept.verdict}.` }),
    make("div", { className: "row" }, button("Delete", async () => {
      await send(address, { method: "DELETE" });
      say("The answer was deleted.");
      await listSaved();
    })));
  return { item, check };
}

let after = "";

/** Show the stored answers, or add those that follow. */
async function listAnswers(more = false) {
  const { answers, next } = await readJson(`${ANSWERS}?limit=${MOST_ANSWERS}&before=${more ? after : ""}`);
  after = next;
  const views = answers.map(answerView);
  const items = views.map(({ item }) => item);
  if (more) byId("answers").append(...items);
  else byId("answers").replaceChildren(...items);
  byId("no-answers").hidden = byId("answers").childElementCount > 0;
  byId("more-answers").hidden = !next;
  // One after the other, as the server limits how many requests it works on.
  for (const { check } of views) await check();
}

/** Fetch what the server has saved and show it. */
export async function listSaved() {
  try {
    await Promise.all([listWatches(), listAnswers()]);
    showProblem(byId("saved-problem"), "");
  } catch (error) {
    showProblem(byId("saved-problem"), error.message);
  }
}

/** Show the tab if the server saves questions and answers. */
export function readySavedTab() {
  tab.hidden = !KEEPS;
  tab.addEventListener("click", listSaved);
  if (KEEPS) readJson(ROUTE).then(({ watches }) => { if (watches.some(isNew)) tab.textContent = "Saved (new)"; }).catch(() => {});
  byId("more-answers").addEventListener("click", () => listAnswers(true).catch((error) => showProblem(byId("saved-problem"), error.message)));
}
