// The Saved tab: questions that are asked again after each index update, and their changes.

import { answerCard } from "./answer_view.js";
import { KEEPS, readJson, send } from "./api.js";
import { button, byId, make, say, showProblem, when } from "./dom.js";
import { choice } from "./systems.js";

const ROUTE = "/v1/watches";
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
    say("Saved. It is asked again after each update; see Saved.");
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
    answer ? answerCard(answer) : make("p", { className: "note", textContent: "It has not been asked yet." }));
}

function watchView(watch) {
  const place = make("div");
  const state = watch.error || (watch.checked ? `asked ${when(watch.checked)} of index ${watch.index_version}` : "waiting to be asked");
  return make("li", { className: "card" }, make("h2", { textContent: watch.question }), make("p", { className: "note", textContent: `Saved ${when(watch.created)}; ${state}.` }),
    make("div", { className: "row" }, button("Show changes and answer", () => open(watch, place)),
      make("a", { href: `${one(watch.id)}/feed`, textContent: "Feed" }),
      button("Remove", async () => {
        await send(one(watch.id), { method: "DELETE" });
        say("The question and its history are removed.");
        await listWatches();
      })), place);
}

/** Fetch the saved questions from the server and show them. */
export async function listWatches() {
  try {
    const { watches } = await readJson(ROUTE);
    byId("watches").replaceChildren(...watches.map(watchView));
    byId("no-watches").hidden = watches.length > 0;
    showProblem(byId("saved-problem"), "");
  } catch (error) {
    showProblem(byId("saved-problem"), error.message);
  }
}

/** Show the tab if the server saves questions. */
export function readySavedTab() {
  byId("tab-saved").hidden = !KEEPS;
  byId("tab-saved").addEventListener("click", listWatches);
}
