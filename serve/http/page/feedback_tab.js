// The Feedback tab: feedback with its answers, newest first, which reviewers accept or reject.

import { answerAddress } from "./address.js";
import { answerCard } from "./answer_view.js";
import { readJson, send } from "./api.js";
import { button, byId, counted, linkTo, make, pubmedAddress, save, say, showProblem, when } from "./dom.js";
import { readStored } from "./stored_answers.js";
import { titleOf } from "./systems.js";

const ROUTE = "/v1/feedback";
const A_PAGE = 20;
const RATINGS = { up: "Right", down: "Not right" };
const STATES = { open: "Not reviewed", accepted: "Accepted", rejected: "Rejected" };
const YES_NO = { yes: "Yes", no: "No" };
let next = "";
let reading = 0;

const exactWords = (exact) => (Array.isArray(exact) ? exact.map((names) => names.join(" = ")).join("; ") : YES_NO[exact] ?? "");

/** Return the correction and note as a list, or null if there is only a rating. */
function saidView({ exact, ideal, pmids, note }) {
  const links = pmids.flatMap((pmid) => [linkTo(pubmedAddress(pmid), `PMID ${pmid}`), " "]);
  const rows = [["Exact answer", exactWords(exact)], ["It should say", ideal], ["Supported by", ...links], ["Note", note]]
    .filter(([, value]) => value);
  return rows.length ? make("dl", { className: "corrected" }, ...rows.flatMap(([term, ...values]) => [make("dt", { textContent: term }), make("dd", {}, ...values)])) : null;
}

function stateView({ state, reviewed, reviewed_by: by }) {
  const words = reviewed ? `${STATES[state]} ${when(reviewed)}${by ? ` by ${by}` : ""}` : STATES[state];
  return make("span", { className: `stance ${{ accepted: "supports", rejected: "contradicts" }[state] ?? "none"}`, textContent: words });
}

async function openAnswer(pressed, answerId, place) {
  const open = !place.childElementCount;
  place.replaceChildren(open ? answerCard((await readStored(answerId)).answer) : "");
  pressed.setAttribute("aria-expanded", String(open));
  pressed.textContent = open ? "Hide the answer" : "Show the answer";
}

function itemOf(given) {
  const place = make("div");
  const show = button("Show the answer", (pressed) => openAnswer(pressed, given.answer_id, place));
  show.setAttribute("aria-expanded", "false");
  const state = make("p", { className: "note" });
  const decisions = make("div", { className: "row", role: "group", "aria-label": `Review of: ${given.question}` });
  const offer = (one) => {
    state.replaceChildren(stateView(one), ` Given ${when(one.created)}.`);
    const choices = one.state === "open" ? { Accept: "accepted", Reject: "rejected" } : { "Undo the review": "open" };
    decisions.replaceChildren(...Object.entries(choices).map(([word, to]) => button(word, async () => {
      const path = `${ROUTE}/${encodeURIComponent(one.id)}/review`;
      const reply = await send(path, { method: "POST", body: JSON.stringify({ state: to }) });
      offer(await reply.json());
      decisions.firstChild.focus();
      say(`${STATES[to]}.`);
    })));
  };
  offer(given);
  return make("li", { className: "card" }, make("h2", { textContent: given.question }),
    make("p", { className: "rated" }, make("strong", { className: given.rating === "up" ? "good" : "lost", textContent: RATINGS[given.rating] }),
      make("span", { className: "hint", textContent: ` Answered by ${titleOf(given.system)} over index ${given.index_version}.` })),
    saidView(given), state,
    make("div", { className: "row" }, decisions, show, make("a", { href: answerAddress(given.answer_id), textContent: "Open the answer" })), place);
}

async function read(before) {
  const own = reading += 1;
  const query = new URLSearchParams({ limit: A_PAGE, before });
  for (const name of ["rating", "state"]) if (byId(`feedback-${name}`).value) query.set(name, byId(`feedback-${name}`).value);
  try {
    const { feedback, next: following } = await readJson(`${ROUTE}?${query}`);
    if (own !== reading) return;
    const items = feedback.map(itemOf);
    byId("feedback")[before ? "append" : "replaceChildren"](...items);
    next = following;
    byId("feedback-more").hidden = !next;
    const { childElementCount: count } = byId("feedback");
    byId("feedback-count").textContent = count ? `${counted(count, "entry", "entries")} shown${next ? "; there are more" : ""}` : "None found.";
    if (before) items[0]?.querySelector("button").focus();
    showProblem(byId("feedback-problem"), "");
  } catch (error) {
    if (own === reading) showProblem(byId("feedback-problem"), error.message);
  }
}

async function saveGold() {
  const gold = await readJson(`${ROUTE}/gold?state=accepted`);
  if (!gold.questions.length) return say("No accepted feedback contains a correct answer.", true);
  save(new Blob([JSON.stringify(gold, null, 1)], { type: "application/json" }), "citeray-gold.json");
  return say(`${counted(gold.questions.length, "question")} saved.`);
}

/** Show the feedback now and whenever the tab is opened again. */
export function openFeedbackTab() {
  read("");
  byId("tab-feedback").addEventListener("click", () => read(""));
  for (const name of ["rating", "state"]) byId(`feedback-${name}`).addEventListener("change", () => read(""));
  byId("feedback-more").addEventListener("click", () => read(next));
  byId("feedback-gold").addEventListener("click", () => saveGold().catch((error) => say(error.message, true)));
}
