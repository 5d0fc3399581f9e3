// What the page asks of the server it came from.

const KEY = "citeray-key";

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const useKey = (key) => sessionStorage.setItem(KEY, key);

async function send(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}), ...(key ? { "X-API-Key": key } : {}) };
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached; is it running?", 0);
  }
  if (reply.ok) return reply;
  let said = `HTTP ${reply.status}`;
  try {
    const { error } = await reply.json();
    said = error.message ?? error;
  } catch { /* no JSON: the status must do */ }
  const retry = reply.headers.get("Retry-After");
  if (reply.status === 401) dispatchEvent(new Event("key-needed"));
  throw new ApiError(retry && !said.includes("again") ? `${said}; try again in ${retry} s` : said, reply.status);
}

const asJson = async (path, options) => (await send(path, options)).json();

/** [{id, description}] of the presets. */
export const listSystems = async () => (await asJson("/v1/models")).data;
export const readCitation = (pmid) => asJson(`/v1/citations/${Number(pmid)}`);

export const startBatch = (body) => asJson("/v1/batches", { method: "POST", body: JSON.stringify(body) });
export const readBatch = (id) => asJson(`/v1/batches/${encodeURIComponent(id)}`);
export const cancelBatch = (id) => asJson(`/v1/batches/${encodeURIComponent(id)}`, { method: "DELETE" });
export const readRun = async (id) => (await send(`/v1/batches/${encodeURIComponent(id)}/run`)).blob();

/** Asks, tells `tell(name, data)` each event as it comes, and gives the Answer. */
export async function askInEvents(request, tell, signal) {
  const body = JSON.stringify({ ...request, stream: true });
  const reply = await send("/v1/answer", { method: "POST", body, signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError("The connection ended before the answer", 0);
    unread += value;
    const parts = unread.split("\n\n");
    unread = parts.pop();
    for (const [name, data] of parts.map(readEvent)) {
      if (name === "error") throw new ApiError(data.error, data.status);
      if (name === "answer") return data;
      if (name) tell(name, data);
    }
  }
}

function readEvent(part) {
  const fields = Object.fromEntries(part.split("\n").map((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  }));
  return fields.event ? [fields.event, JSON.parse(fields.data)] : ["", null];
}
