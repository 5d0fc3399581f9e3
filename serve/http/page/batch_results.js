// Answers of a batch: a list that grows as they arrive, and a CSV table.

import { readBatchFile, readResults } from "./api.js";
import { button, counted, linkTo, make, pubmedAddress, save } from "./dom.js";

const A_PAGE = 20;
const VERDICTS = { mixed: "Sources disagree", not_enough_evidence: "Not enough evidence" };

const pmidsOf = (entry) => (entry.documents ?? []).map((address) => address.split("/").at(-1));
const YES_NO = { yes: "Yes", no: "No" };
const isUnsure = ({ verdict }) => verdict === "not_enough_evidence";
/** Return the exact answer in words; "" for a yes or no on which the sources disagree. */
const exactOf = ({ exact_answer: exact, verdict }) => (Array.isArray(exact) ? exact.map((names) => [names].flat()[0]).join("; ") : verdict === "mixed" ? "" : YES_NO[exact] ?? exact ?? "");
const idealOf = ({ ideal_answer: ideal }) => [ideal ?? ""].flat().join(" ");

/** Return an answer as one line: the verdict, unless it is "answered", and the short answer. */
function inShort(entry) {
  if (!("ideal_answer" in entry)) return counted(pmidsOf(entry).length, "article");
  return VERDICTS[entry.verdict] ?? (exactOf(entry) || "Answered");
}

function itemOf(entry) {
  const unsure = isUnsure(entry);
  const exact = exactOf(entry);
  const said = [exact && `${exact}.`, idealOf(entry)].filter(Boolean).join(" ");
  return make("details", { className: "result" },
    make("summary", {}, make("span", { textContent: entry.body }), " ", make("strong", { className: unsure ? "lost" : "", textContent: inShort(entry) })),
    said ? make("p", { textContent: unsure ? `The evidence is not enough; the best guess: ${said}` : said }) : null,
    make("p", { className: "ids" }, ...pmidsOf(entry).map((pmid) => linkTo(pubmedAddress(pmid), `PMID ${pmid}`))));
}

/** List of the answers of batch `id`; `bodies` maps the ids of questions to their text. */
export class BatchResults {
  constructor(id, bodies = {}) {
    this.id = id;
    this.bodies = bodies;
    this.read = 0;
    this.wanted = A_PAGE;
    this.items = new Map();
    this.list = make("div", { className: "results" });
    this.failed = make("ul", { className: "lost" });
    this.further = button("Show more", () => {
      this.wanted += A_PAGE;
      return this.more();
    });
    this.further.hidden = true;
    this.element = make("div", {}, this.failed, this.list, this.further);
  }

  /** Read more answers until the wanted number is shown. */
  async more() {
    if (this.read < this.wanted) {
      const entries = await readResults(this.id, this.read, this.wanted - this.read);
      this.read += entries.length;
      for (const entry of entries) this.add(entry);
    }
    this.further.hidden = this.read < this.wanted;
  }

  add(entry) {
    if (!this.items.has(entry.id)) this.items.set(entry.id, itemOf(entry));
    this.list.append(this.items.get(entry.id));
  }

  /** Sort the answers in the order of the questions; call this once the batch is done. */
  async settle() {
    this.read = 0;
    await this.more();
  }

  fail(failed) {
    this.failed.replaceChildren(...Object.entries(failed).map(([id, reason]) =>
      make("li", { textContent: `${this.bodies[id] ?? `Question ${id}`} No answer: ${reason}` })));
  }
}

// Spreadsheets run cells that begin with these characters as formulas.
const cell = (value) => {
  const text = /^[=+\-@\t\r]/u.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
};

/** Save the run as a CSV table, without guesses for questions that lack evidence. */
export async function saveTable(id, name) {
  const { questions } = JSON.parse(await (await readBatchFile(id, "run")).text());
  const rows = questions.map((entry) => [entry.id, entry.type, entry.body, (entry.verdict ?? "").replaceAll("_", " "), ...(isUnsure(entry) ? ["", ""] : [exactOf(entry), idealOf(entry)]), pmidsOf(entry).join(" ")]);
  const head = ["id", "type", "question", "verdict", "exact answer", "answer", "PMIDs"];
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  save(new Blob([`\ufeff${text}\r\n`], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
}
