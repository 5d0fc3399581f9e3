// Feedback on an answer: a rating or a correction. Giving feedback stores the answer.

import { KEEPS, send } from "./api.js";
import { button, make, say } from "./dom.js";
import { stored } from "./stored_answers.js";

const lines = (text) => text.split("\n").map((line) => line.split(";").map((name) => name.trim()).filter(Boolean)).filter((names) => names.length);

function exactField(type) {
  if (type === "yesno") {
    return make("select", {}, ...[["", "not said"], ["yes", "yes"], ["no", "no"]].map(([value, textContent]) => make("option", { value, textContent })));
  }
  if (type === "factoid" || type === "list") {
    return make("textarea", { rows: 2, maxLength: 5000, placeholder: "one a line; other names after ;" });
  }
  return null;
}

const exactIn = (field) => (field?.tagName === "SELECT" ? field.value || null : field && lines(field.value).length ? lines(field.value) : null);

/** Return rating buttons and a correction form, or "" if the server stores no feedback. */
export function feedbackRow(request, answer, show) {
  if (!KEEPS) return "";
  const give = async (opinion) => {
    const kept = await stored(request, answer);
    await send(`/v1/answers/${encodeURIComponent(kept.answer_id)}/feedback`, { method: "POST", body: JSON.stringify(opinion) });
    say("Thank you. Your feedback is saved with the answer.");
    if (!answer.answer_id) show(kept);
  };
  const ideal = make("textarea", { rows: 3, maxLength: 5000 });
  const note = make("input", { type: "text", maxLength: 5000 });
  const exact = exactField(answer.question.type);
  const form = make("form", { className: "correction", hidden: true },
    exact ? make("label", {}, "The exact answer ", exact) : null,
    make("label", {}, "What the answer should say ", ideal), make("label", {}, "A note for the reviewer ", note),
    make("button", { className: "main", textContent: "Send" }));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const right = exactIn(exact);
    try {
      await give({ rating: "down", ideal: ideal.value.trim(), note: note.value.trim(), ...(right ? { exact: right } : {}) });
      form.hidden = true;
    } catch (error) {
      say(error.message, true);
    }
  });
  const open = button("Not right", () => {
    form.hidden = !form.hidden;
    open.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) (exact ?? ideal).focus();
  });
  open.setAttribute("aria-expanded", "false");
  return make("div", { className: "opinion" }, make("span", { className: "hint", textContent: "Is this answer right?" }), " ",
    button("Right", () => give({ rating: "up" })), open, form);
}
