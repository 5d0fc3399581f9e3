// Read the questions of a batch from text: one a line, CSV, or JSON.

const SEPARATORS = [",", ";", "\t"];
const BODIES = ["question", "body"];

/** Return the cells of a CSV text (RFC 4180) by row; blank rows are left out. */
function rowsOf(text) {
  const head = text.split("\n", 1)[0];
  const [separator] = SEPARATORS.map((one) => [one, head.split(one).length]).reduce((best, one) => (one[1] > best[1] ? one : best));
  const rows = [[]];
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"|([^${separator}"\\r\\n][^${separator}\\r\\n]*)?)(${separator}|\\r?\\n|$)`, "gu");
  for (const [whole, quoted, plain, end] of text.matchAll(cell)) {
    if (!whole && rows.at(-1).length === 0) break;
    rows.at(-1).push((quoted?.replaceAll('""', '"') ?? plain ?? "").trim());
    if (!end) break;
    if (end !== separator) rows.push([]);
  }
  return rows.filter((row) => row.some(Boolean));
}

/** Return the questions of a table; without a column "question", those of its first column. */
function inTable(text) {
  const [head = [], ...rows] = rowsOf(text);
  const names = head.map((name) => name.toLowerCase());
  const at = names.findIndex((name) => BODIES.includes(name));
  if (at < 0) return inLines([head, ...rows].map(([first]) => first));
  const [id, type] = ["id", "type"].map((name) => names.indexOf(name));
  return rows.filter((row) => row[at]).map((row, n) => ({ id: row[id] || `${n + 1}`, type: row[type] || "unknown", body: row[at] }));
}

const inLines = (lines) => lines.map((line) => line.trim()).filter(Boolean)
  .map((body, at) => ({ id: `${at + 1}`, type: "unknown", body }));

/** Return the questions of a BioASQ file, or of a list of questions or of their texts. */
function inJson(text) {
  const read = JSON.parse(text);
  const list = read?.questions ?? read;
  if (!Array.isArray(list)) throw new SyntaxError("it has no list of questions");
  return list.map((one, at) => (typeof one === "string" ? { id: `${at + 1}`, type: "unknown", body: one }
    : { ...one, id: one.id ?? `${at + 1}`, type: one.type ?? "unknown", body: one.body ?? one.question }));
}

export const questionsInLines = (text) => inLines(text.split("\n"));

/** Return the questions of a file by the ending of its name; throws an Error that names the file. */
export async function questionsInFile(file) {
  const text = (await file.text()).replace(/^\ufeff/u, "");
  const ending = file.name.split(".").at(-1).toLowerCase();
  const read = { json: inJson, csv: inTable, tsv: inTable }[ending] ?? questionsInLines;
  try {
    const questions = read(text);
    if (!questions.length) throw new SyntaxError("it has no questions");
    return questions;
  } catch (error) {
    throw new Error(`${file.name}: the questions cannot be read: ${error.message}`);
  }
}
