// The conversation: the earlier questions of a thread, each with its answer.

import { addressOf, standing } from "./address.js";
import { answerCard } from "./answer_view.js";
import { byId, make } from "./dom.js";
import { exactNames } from "./verdict_view.js";

const VERDICTS = { answered: "Answered", mixed: "Sources disagree", not_enough_evidence: "Not enough evidence" };

const inShort = (answer) => (answer.verdict === "answered" && exactNames(answer).join("; ")) || VERDICTS[answer.verdict];

/** Return a turn, folded to its question and short answer. */
function turnView({ request, answer }) {
  const place = make("div");
  const turn = make("details", { className: "card turn" },
    make("summary", {}, request.question, " ", make("strong", { textContent: inShort(answer) })), place);
  turn.addEventListener("toggle", () => {
    if (turn.open && !place.childElementCount) place.append(answerCard(answer, { address: location.origin + addressOf(standing(request, answer)) }));
  });
  return turn;
}

/** Show the earlier turns, oldest first. */
export function showThread(turns) {
  byId("thread").hidden = !turns.length;
  byId("thread").replaceChildren(...turns.map(turnView));
}
