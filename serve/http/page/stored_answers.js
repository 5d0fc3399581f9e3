// Answers that the server keeps under a permanent address (GET /v1/answers/{id}).

import { answerAddress } from "./address.js";
import { KEEPS, askInEvents, readJson } from "./api.js";
import { button, copy } from "./dom.js";

/** {request, answer, created} of a stored answer; raises ApiError. */
export async function readStored(id) {
  const { request, answer, created } = await readJson(`/v1/answers/${encodeURIComponent(id)}`);
  const { body, type } = answer.question;
  return { answer, created, request: { question: body, type, k: 10, filters: {}, ...request, system: answer.system } };
}

const whole = (id) => `${location.origin}${answerAddress(id)}`;

/** The answer as the server keeps it: what it has not kept yet is written once more, and kept. */
export async function stored(request, answer) {
  if (answer.answer_id) return answer;
  const kept = await askInEvents({ ...request, store: true }, () => {});
  if (!kept.answer_id) throw new Error("The server could not keep the answer.");
  return kept;
}

/**
 * A button that stores the answer and copies its address; "" where the server keeps none.
 * `show(answer)` shows the one that is kept.
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
