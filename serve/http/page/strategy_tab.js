// The Strategy tab: a Boolean PubMed strategy for a question, its blocks, and all of its hits.

import { addressOf, isStrategy } from "./address.js";
import { askJson, send } from "./api.js";
import { button, byId, copy, counted, linkTo, make, pubmedAddress, save, say, showProblem } from "./dom.js";
import { chosenFilters } from "./filters.js";

const PAGE = 20;
const NAMES = { pubmed: "PubMed", ovid: "Ovid", "prisma-s": "PRISMA-S paragraph" };
const TAGS = { mh: "mh:noexp", tiab: "tiab" };
const FILES = { ris: ["RIS", "ris"], nbib: ["NBIB", "nbib"], csv: ["CSV", "csv"] };
// Query of the strategy whose blocks are shown.
let made = "";
const place = (name) => byId(`strategy-${name}`);
const asSentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}.`;
const about = (exact, hits) => `${exact ? "" : "about "}${counted(hits, "hit")}`;

function termView(term, wanted) {
  const alone = term.loses ? `, alone in finding ${term.loses}` : "";
  return make("li", {}, make("code", { textContent: `${term.value}[${TAGS[term.field]}]` }),
    ` ${about(term.exact, term.hits)}, finds ${term.found} of ${wanted}${alone}`);
}

function blockRow(block, n, made) {
  const wanted = made.reference.length;
  const lost = [["the MeSH heading", block.without_mh], ["the [tiab] words", block.without_tiab]]
    .filter(([, count]) => count !== null).map(([what, count]) => `dropping ${what} loses ${count} of ${made.found}`);
  if (block.without_hits !== null) lost.push(`without this block: ${counted(block.without_hits, "hit")}, ${block.excludes} more found`);
  return make("tr", {}, make("th", { scope: "row", textContent: n ? `#${n} ${block.name}` : `left out: ${block.name}` }),
    make("td", {}, make("ul", {}, ...block.terms.map((term) => termView(term, wanted)))),
    make("td", { textContent: about(block.exact, block.hits) }), make("td", { textContent: `${block.found} of ${wanted}` }),
    make("td", { textContent: n ? lost.join("; ") : `would exclude ${block.excludes} of the ${made.found} found` }));
}

const headOf = (...titles) => make("thead", {}, make("tr", {}, ...titles.map((textContent) => make("th", { scope: "col", textContent }))));

function showBlocks({ strategy: made, texts }, address) {
  const percent = (share) => `${Math.round(100 * share)}%`;
  const notes = [...made.notes.map(asSentence), ...made.degraded];
  place("blocks").replaceChildren(
    make("p", {}, `Finds ${made.found} of the ${made.reference.length} best articles of the semantic search (recall ${percent(made.recall)}, precision ${percent(made.precision)}).`),
    make("p", { id: "strategy-sideways", className: "hint", textContent: "Scroll the table sideways to see all columns." }),
    make("div", { id: "strategy-table", className: "scroll", role: "region", tabIndex: 0, "aria-label": "Blocks of the strategy" },
      make("table", { className: "compared" }, headOf("Block", "Terms, joined by OR", "Hits alone", "Finds", "What it loses"),
        make("tbody", {}, ...made.blocks.map((block, at) => blockRow(block, at + 1, made)), ...made.left_out.map((block) => blockRow(block, 0, made))))),
    make("p", { className: "hint" }, [made.limits.length ? `Limits: ${made.limits.join("; ")}.` : "", ...notes].filter(Boolean).join(" ")),
    make("div", { className: "row" }, ...Object.entries(NAMES).map(([form, name]) => button(`Copy for ${name}`.replace("for PRISMA", "PRISMA"), () => copy(texts[form], name))),
      button("Copy link", () => copy(address, "Link"))));
}

const hitView = ({ pmid, title, journal_abbreviation: journal, year }) => make("li", {},
  linkTo(pubmedAddress(pmid), title || `PMID ${pmid}`), make("span", { className: "hint", textContent: ` ${[journal, year].filter(Boolean).join(" ")}` }));

async function saveHits(query, format) {
  const [name, ending] = FILES[format];
  const reply = await send("/v1/search/boolean/export", { method: "POST", body: JSON.stringify({ query, format }) });
  save(await reply.blob(), `strategy.${ending}`);
  say(`All articles saved as ${name}.`);
}

/** Run the query in the box, and show the page of its hits that begins at `offset`. */
async function run(offset = 0) {
  const query = place("query").value.trim();
  if (!query) return;
  const found = await askJson("/v1/search/boolean", { query, limit: PAGE, offset });
  const last = offset + found.citations.length;
  const edited = query !== made;
  place("blocks").hidden = edited;
  place("hits").replaceChildren(
    make("h2", { textContent: counted(found.total, "result") }),
    edited ? make("p", { textContent: "You edited the query, so the figures and texts of the strategy are hidden. Make the strategy again to see them." }) : "",
    make("p", { className: "hint", textContent: [...found.notes.map(asSentence), ...found.degraded].join(" ") }),
    make("div", { className: "row" }, ...Object.entries(FILES).map(([format, [name]]) => button(`All as ${name}`, () => saveHits(query, format)))),
    make("ol", { start: offset + 1 }, ...found.citations.map(hitView)),
    make("div", { className: "row" }, `${found.total ? offset + 1 : 0} to ${last} of ${found.total.toLocaleString("en")}`,
      offset ? button("Previous", () => run(Math.max(0, offset - PAGE))) : "", last < found.total ? button("Next", () => run(last)) : ""));
}

async function makeStrategy() {
  place("progress").textContent = "Making the strategy";
  place("result").hidden = true;
  const asked = { question: place("question").value, filters: chosenFilters() };
  const most = Number(place("max").value);
  const reply = await askJson("/v1/strategy", { ...asked, max_hits: most });
  made = reply.strategy.pubmed;
  place("query").value = made;
  showBlocks(reply, `${location.origin}${addressOf(asked)}&tab=strategy&max_hits=${most}`);
  place("result").hidden = false;
  place("sideways").hidden = place("table").scrollWidth <= place("table").clientWidth;
  await run();
}

async function guarded(work) {
  showProblem(place("problem"), "");
  try {
    await work();
  } catch (error) {
    showProblem(place("problem"), error.message);
  }
  place("progress").textContent = "";
}

const submitting = (work) => (event) => {
  event.preventDefault();
  guarded(work);
};

/** Build the tab; its question is that of the tab Ask. Make the strategy if the URL asks for it. */
export function openStrategyTab() {
  const most = Number(new URLSearchParams(location.search).get("max_hits")) || 500;
  byId("panel-strategy").replaceChildren(
    make("h1", { textContent: "A PubMed search strategy from a question" }),
    make("form", { className: "card", onsubmit: submitting(makeStrategy) },
      make("label", { htmlFor: "strategy-question", textContent: "Question" }),
      make("textarea", { id: "strategy-question", rows: 2, maxLength: 2000, required: true, value: byId("question").value }),
      make("div", { className: "row options" },
        make("label", {}, "At most ", make("input", { id: "strategy-max", type: "number", min: 1, max: 1000000, value: most, required: true }), " results"),
        make("span", { className: "grow" }), make("button", { className: "main", textContent: "Make strategy" })),
      make("p", { className: "hint", textContent: "The filters of the tab Ask become limits of the strategy." })),
    make("p", { id: "strategy-progress", role: "status", className: "progress" }),
    make("div", { id: "strategy-problem", role: "alert" }),
    make("div", { id: "strategy-result", hidden: true },
      make("form", { className: "card", onsubmit: submitting(() => run()) },
        make("label", { htmlFor: "strategy-query", textContent: "Query box: edit the query and run it again" }),
        make("textarea", { id: "strategy-query", rows: 4, maxLength: 20000, required: true, spellcheck: false }),
        make("div", { className: "row" }, button("Copy query", () => copy(place("query").value, "Query")),
          make("span", { className: "grow" }), make("button", { className: "main", textContent: "Search" }))),
      make("section", { id: "strategy-blocks", className: "card", "aria-label": "Blocks" }),
      make("section", { id: "strategy-hits", className: "card", "aria-label": "Results" })));
  if (isStrategy(location.search)) guarded(makeStrategy);
}
