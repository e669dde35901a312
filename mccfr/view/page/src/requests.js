/* Requests to the page's server, which answers in JSON. */

const SILENT = "The server does not answer: is mccfr view still running?";

async function answered(response) {
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}
export const get = async (path, query = {}) => answered(await fetch(`${path}?${new URLSearchParams(query)}`));
export const post = async (path, body) =>
  answered(await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));

/* Whether a request failed because the server is gone; else it has refused it with a sentence. */
export const isSilence = (error) => error instanceof TypeError;
export const sentenceOf = (error) => (isSilence(error) ? SILENT : error.message);
/* Do what the server may refuse; `failed` is a signal that says why, or "". */
export async function attempt(failed, does) {
  try {
    await does();
    failed.value = "";
  } catch (error) { failed.value = sentenceOf(error); }
}
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
