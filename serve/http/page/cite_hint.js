// Citation numbers in answers: links to references that show their evidence on hover and focus.

import { byId, make, shortened } from "./dom.js";
import { nearestSentence } from "./passage_dialog.js";
import { shownTitle, stubOf } from "./references.js";

const LEAVE_MS = 200;
const MOST = 420;
let closing = 0;

function close() {
  clearTimeout(closing);
  byId("hint").hidden = true;
  document.querySelector("[aria-describedby=hint]")?.removeAttribute("aria-describedby");
}

const closeSoon = () => {
  clearTimeout(closing);
  closing = setTimeout(close, LEAVE_MS);
};

function open(link, answer, pmid, said) {
  close();
  const hint = byId("hint");
  const sentence = nearestSentence(answer, pmid, said);
  const stub = stubOf(answer, pmid);
  hint.replaceChildren(
    make("strong", { textContent: shortened(shownTitle(stub), MOST) }), stub.year ? ` (${stub.year})` : "",
    sentence ? make("q", { textContent: shortened(sentence, MOST) }) : "");
  hint.hidden = false;
  link.setAttribute("aria-describedby", "hint");
  const { left, bottom, top } = link.getBoundingClientRect();
  const { width, height } = hint.getBoundingClientRect();
  const below = bottom + height + 8 < innerHeight;
  hint.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - width - 8)) + scrollX}px`;
  hint.style.top = `${(below ? bottom + 4 : top - height - 4) + scrollY}px`;
}

/** Return a link with number `n` to the element `target`; it cites `pmid` for sentence `said`. */
export function citeLink(answer, { n, pmid, said, target, against = false }) {
  const link = make("a", {
    className: against ? "cite against" : "cite", href: `#${target}`, textContent: `[${n}]`,
    "aria-label": against ? `Reference ${n}, against` : `Reference ${n}`,
  });
  const show = () => open(link, answer, pmid, said);
  link.addEventListener("mouseenter", show);
  link.addEventListener("focus", show);
  link.addEventListener("mouseleave", closeSoon);
  link.addEventListener("blur", closeSoon);
  link.addEventListener("click", (event) => {
    // Do not follow the link: the URL names the question and must not change.
    event.preventDefault();
    close();
    const reference = byId(target);
    reference.focus({ preventScroll: true });
    reference.scrollIntoView({ block: "nearest" });
  });
  return link;
}

export function readyHint() {
  byId("hint").addEventListener("mouseenter", () => clearTimeout(closing));
  byId("hint").addEventListener("mouseleave", closeSoon);
  addEventListener("keydown", (event) => event.key === "Escape" && close());
}
