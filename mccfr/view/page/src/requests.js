/* Requests to the page's server, which answers in JSON. */

const SILENT = "The server does not answer: is mccfr view still running?";

/* Return the JSON of a response; throw its `error` if the server refuses the request. */
async function contentOf(response) {
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}
export const get = async (path, query = {}) => contentOf(await fetch(`${path}?${new URLSearchParams(query)}`));
export const post = async (path, body) =>
  contentOf(await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));

/* True if a request failed because the server does not answer, false for an error message of the server. */
export const isSilence = (error) => error instanceof TypeError;
export const sentenceOf = (error) => (isSilence(error) ? SILENT : error.message);
/* Run a function that sends requests, and set the signal `failed` to its error message, or to "" if it succeeds. */
export async function attempt(failed, request) {
  try {
    await request();
    failed.value = "";
  } catch (error) { failed.value = sentenceOf(error); }
}
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
