/* The fragment of the page's URL.  It names the view and the decision, so that a link opens both.

   #line=b300c/&board=Kc7d2s&beside=1&of=0&review=3   a decision: line and board; of: the strategy; beside: the strategy to
                                                      compare with; review: number of a decision in the review
   #spot&board=...&oop=...                            the form of a spot, with its fields
   #positions&line=ffb250                             charts by position: first in, or after a line that ends with a raise
   #play                                              the table for hands against the strategy

   A strategy is named by its number, or by its run if it is a solved spot. */
import { signal } from "@preact/signals";

const DECISION = { line: "", board: "", beside: "", of: "0", review: "" };

/* Decode a percent-encoded text.  Return an invalid one unchanged: the server then refuses it with a message. */
function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
/* Parse a fragment into {tab, ...}: the name of the view and its parameters. */
function parseFragment(hash) {
  if (/^#spot(&|$)/.test(hash)) return { tab: "spot", fields: new URLSearchParams(hash.slice(6)) };
  if (hash === "#play") return { tab: "play" };
  if (/^#positions(&|$)/.test(hash)) return { tab: "positions", line: new URLSearchParams(hash.slice(11)).get("line") || "" };
  const found = { ...DECISION };
  for (const part of hash.replace(/^#/, "").split("&")) {
    const cut = part.indexOf("=");
    if (cut > 0 && part.slice(0, cut) in found) found[part.slice(0, cut)] = decode(part.slice(cut + 1));
  }
  return { tab: found.review ? "review" : "look", ...found };
}

export const route = signal(parseFragment(location.hash));
/* The fragment of the decision that was shown last. */
export const lastDecision = signal("#line=");

/* Return the fragment of a decision; parameters with default values are left out. */
export function decisionAddress({ line, board, beside, of, review }) {
  const more = Object.entries({ board, beside, of: of === "0" ? "" : of, review }).filter(([, value]) => value);
  return `#line=${encodeURIComponent(line).replaceAll("%2F", "/")}` +
    more.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("");
}
export const spotAddress = (fields) => `#spot&${new URLSearchParams(fields)}`;

/* Open an address.  replaced: replace the current entry of the browser's history, so that Back skips it. */
export function goTo(hash, replaced = false) {
  if (replaced || hash === location.hash) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  updateRoute();
}
/* Change the address in the browser without opening it. */
export const keepAddress = (hash) => history.replaceState(null, "", hash);

function updateRoute() {
  route.value = parseFragment(location.hash);
  if (["look", "review"].includes(route.value.tab)) lastDecision.value = location.hash || "#line=";
}
window.addEventListener("hashchange", updateRoute);
