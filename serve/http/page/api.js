// HTTP requests to the server's API.

const KEY = "citeray-key";
/** True if the server stores answers, feedback and questions; it sets `data-keeps` in the page. */
export const KEEPS = document.documentElement.dataset.keeps === "yes";

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const useKey = (key) => sessionStorage.setItem(KEY, key);

/** Return the response to a request; throws ApiError with the server's message. */
export async function send(path, options = {}) {
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
  const said = await problemIn(reply);
  const retry = reply.headers.get("Retry-After");
  if (reply.status === 401) dispatchEvent(new Event("key-needed"));
  throw new ApiError(retry && !said.includes("again") ? `${said}; try again in ${retry} s` : said, reply.status);
}

async function problemIn(reply) {
  try {
    const { error, detail } = await reply.json();
    const said = error?.message ?? error ?? detail;
    return typeof said === "string" ? said : `HTTP ${reply.status}`;
  } catch {
    // The body is not JSON: show the status.
    return `HTTP ${reply.status}`;
  }
}

const asJson = async (path, options) => (await send(path, options)).json();
const post = (body) => ({ method: "POST", body: JSON.stringify(body) });
const batch = (id) => `/v1/batches/${encodeURIComponent(id)}`;

export const askJson = (path, body) => asJson(path, post(body));
export const readJson = (path, signal) => asJson(path, { signal });

/** Return {recommended, systems: [{name, title, about, group, needs, available, reason}]}. */
export const listSystems = () => asJson("/v1/systems");
export const readCitation = (pmid) => asJson(`/v1/citations/${Number(pmid)}`);

/** Return the response of /readyz, even if its status is 503 (not ready). */
export async function readReadiness() {
  const reply = await fetch("/readyz");
  return reply.json();
}

export const startBatch = (body) => asJson("/v1/batches", post(body));
export const readBatch = (id) => asJson(batch(id));
export const cancelBatch = (id) => asJson(batch(id), { method: "DELETE" });
export const readBatchFile = async (id, path) => (await send(`${batch(id)}/${path}`)).blob();
export const readResults = async (id, after, count) =>
  (await asJson(`${batch(id)}/results?after=${after}&count=${count}`)).results;

/** Ask a question, pass each event to `tell(name, data)`, and return the Answer. */
export async function askInEvents(request, tell, signal) {
  const reply = await send("/v1/answer", { ...post({ ...request, stream: true }), signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError("The connection ended before the answer", 0);
    unread += value;
    const parts = unread.split("\n\n");
    unread = parts.pop();
    for (const [name, data] of parts.map(readEvent)) {
      if (name === "error") throw new ApiError(data.detail, data.status);
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
