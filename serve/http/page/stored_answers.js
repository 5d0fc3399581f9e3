// Answers stored on the server with permanent links (GET /v1/answers/{id}).

import { answerAddress } from "./address.js";
import { KEEPS, askInEvents, readJson } from "./api.js";
import { button, copy } from "./dom.js";

/** Return {request, answer, created} of a stored answer; throws ApiError. */
export async function readStored(id) {
  const { request, answer, created } = await readJson(`/v1/answers/${encodeURIComponent(id)}`);
  const { body, type } = answer.question;
  return { answer, created, request: { question: body, type, k: 10, filters: {}, ...request, system: answer.system } };
}

const whole = (id) => `${location.origin}${answerAddress(id)}`;

/** Return the stored answer. If it is not stored yet, send its request with `store`: the server stores a recent answer without asking again. */
export async function stored(request, answer) {
  if (answer.answer_id) return answer;
  const kept = await askInEvents({ ...request, store: true }, () => {});
  if (!kept.answer_id) throw new Error("The server could not save the answer.");
  return kept;
}

/**
 * Return a button that stores the answer and copies its link, or "" if the server cannot store it.
 * `show(answer)` is called with the stored answer.
 */
export function storeButton(request, answer, show) {
  if (!KEEPS) return "";
  if (answer.answer_id) return button("Copy permanent link", () => copy(whole(answer.answer_id), "Permanent link"));
  return button("Save and share", async (pressed) => {
    pressed.disabled = true;
    try {
      const kept = await stored(request, answer);
      show(kept);
      await copy(whole(kept.answer_id), "Saved. Permanent link");
    } finally {
      pressed.disabled = false;
    }
  });
}
