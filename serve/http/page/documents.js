// Downloads: references in formats of reference managers, and answers as documents.
// The server writes both (GET /v1/references, POST /v1/answers/document).

import { send } from "./api.js";
import { button, make, save, say } from "./dom.js";
import { readDocument } from "./references.js";

const REFERENCES = "/v1/references";
// The server names its formats in the page: {format: [title, file name extension]}.
const { formats, forms } = document.documentElement.dataset;
const FORMATS = JSON.parse(formats);
const FORMS = JSON.parse(forms);

async function saveReferences(pmids, format) {
  const reply = await send(`${REFERENCES}?pmids=${pmids.map(Number).join(",")}&format=${format}`);
  save(await reply.blob(), `citeray.${FORMATS[format][1]}`);
  say(`${pmids.length} references saved.`);
}

async function saveDocument(answer, form, address) {
  save(await readDocument(answer, form, address), `citeray-answer.${FORMS[form][1]}`);
  say("The answer was saved.");
}

const rowOf = (title, formats, work) => [make("p", { className: "hint", textContent: title }),
  make("div", { className: "row" }, ...Object.entries(formats).map(([key, [name]]) => button(name, () => work(key))))];

/** Return the menu of everything but Copy: `actions` (elements), and exports of `sets`, lists of PMIDs such as [["References", [1, 2]]], and of `answer`. */
export const moreMenu = (actions, sets, answer, address) => make("details", { className: "menu" }, make("summary", { textContent: "More" }),
  make("div", { className: "menu-body" }, make("div", { className: "row" }, ...actions),
    ...sets.filter(([, pmids]) => pmids.length)
      .flatMap(([title, pmids]) => rowOf(`${title} (${pmids.length})`, FORMATS, (format) => saveReferences(pmids, format))),
    ...rowOf("This answer with its references", FORMS, (form) => saveDocument(answer, form, address))));
