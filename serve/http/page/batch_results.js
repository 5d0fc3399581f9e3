// The answers of a batch as they come, each under its question, and all of them as a table.

import { readResults, readRun } from "./api.js";
import { button, counted, linkTo, make, pubmedAddress, save } from "./dom.js";

const A_PAGE = 20;
const VERDICTS = { mixed: "Sources disagree", not_enough_evidence: "Not enough evidence" };

const pmidsOf = (entry) => (entry.documents ?? []).map((address) => address.split("/").at(-1));
const YES_NO = { yes: "Yes", no: "No" };
const exactOf = ({ exact_answer: exact }) => (Array.isArray(exact) ? exact.map((names) => [names].flat()[0]).join("; ") : YES_NO[exact] ?? exact ?? "");
const idealOf = ({ ideal_answer: ideal }) => [ideal ?? ""].flat().join(" ");

/** An answer in a line: the verdict where it is not plain, and the short answer. */
function inShort(entry) {
  if (!("ideal_answer" in entry)) return counted(pmidsOf(entry).length, "article");
  return VERDICTS[entry.verdict] ?? (exactOf(entry) || "Answered");
}

function itemOf(entry) {
  const unsure = entry.verdict === "not_enough_evidence";
  const exact = exactOf(entry);
  const said = [exact && `${exact}.`, idealOf(entry)].filter(Boolean).join(" ");
  return make("details", { className: "result" },
    make("summary", {}, make("span", { textContent: entry.body }), " ", make("strong", { className: unsure ? "lost" : "", textContent: inShort(entry) })),
    said ? make("p", { textContent: unsure ? `The evidence is not enough; the best guess: ${said}` : said }) : null,
    make("p", { className: "ids" }, ...pmidsOf(entry).map((pmid) => linkTo(pubmedAddress(pmid), `PMID ${pmid}`))));
}

/** A list of the answers of batch `id`; `bodies` are its questions by id, where they are known. */
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

  /** Reads up to as many as are wanted. */
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

  /** Once it is done: the same answers in the order of the questions. */
  async settle() {
    this.read = 0;
    await this.more();
  }

  fail(failed) {
    this.failed.replaceChildren(...Object.entries(failed).map(([id, reason]) =>
      make("li", { textContent: `${this.bodies[id] ?? `Question ${id}`} No answer: ${reason}` })));
  }
}

// A cell that begins like a formula would be one in a spreadsheet.
const cell = (value) => {
  const text = /^[=+\-@\t\r]/u.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
};

/** Saves the run as a table. */
export async function saveTable(id, name) {
  const { questions } = JSON.parse(await (await readRun(id)).text());
  const rows = questions.map((entry) => [entry.id, entry.type, entry.body, entry.verdict ?? "", exactOf(entry), idealOf(entry), pmidsOf(entry).join(" ")]);
  const head = ["id", "type", "question", "verdict", "exact answer", "answer", "PMIDs"];
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  save(new Blob([`\ufeff${text}\r\n`], { type: "text/csv;charset=utf-8" }), `${name.replace(/\.json$/u, "")}.csv`);
}
