// Requests to the server. A failure becomes an Error with the server's own sentence, and its status.

const KEY = "compneg-api-key";

/** Keeps the key for requests; false if no header can hold it. */
export function useKey(key) {
  const isSendable = /^[\x20-\x7e\xa0-\xff]*$/.test(key);
  if (isSendable) sessionStorage.setItem(KEY, key);
  return isSendable;
}

export function pathOf(path, parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  const query = new URLSearchParams(pairs).toString();
  return query ? `${path}?${query}` : path;
}

export async function get(path, parameters = {}, signal = undefined) {
  const key = sessionStorage.getItem(KEY);
  let status = 0, body;
  try {
    const answer = await fetch(pathOf(path, parameters), { signal, headers: key ? { "X-API-Key": key } : {} });
    status = answer.status;
    body = await answer.json();
    if (answer.ok) return body;
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  const said = status ? `The server answers with status ${status}.` : "The server does not answer.";
  throw Object.assign(new Error(body?.error ?? said), { status });
}
