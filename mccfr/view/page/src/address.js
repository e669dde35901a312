/* What the address of the page says: its fragment names the view and the decision, so that a link carries both.

   #line=b300c/&board=Kc7d2s&beside=1&of=0&review=3   a decision, compared, of which strategy (a number, or the run of a solved spot), of a review
   #spot&board=...&oop=...                            the form of a spot
   #positions&line=ffb250                             charts by position: first in, or after a line that faces a raise
   #play                                              the table */
import { signal } from "@preact/signals";

const DECISION = { line: "", board: "", beside: "", of: "0", review: "" };

/* Decoded where it can be; else as it stands, and the server says what is wrong with it. */
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
function parsed(hash) {
  if (/^#spot(&|$)/.test(hash)) return { tab: "spot", fields: new URLSearchParams(hash.slice(6)) };
  if (hash === "#play") return { tab: "play" };
  if (/^#positions(&|$)/.test(hash)) return { tab: "positions", line: new URLSearchParams(hash.slice(11)).get("line") || "" };
  const found = { ...DECISION };
  for (const part of hash.replace(/^#/, "").split("&")) {
    const cut = part.indexOf("=");
    if (cut > 0 && part.slice(0, cut) in found) found[part.slice(0, cut)] = decoded(part.slice(cut + 1));
  }
  return { tab: found.review ? "review" : "look", ...found };
}

export const route = signal(parsed(location.hash));
/* The last decision that was looked at. */
export const lastDecision = signal("#line=");

export function decisionAddress({ line, board, beside, of, review }) {
  const more = Object.entries({ board, beside, of: of === "0" ? "" : of, review }).filter(([, value]) => value);
  return `#line=${encodeURIComponent(line).replaceAll("%2F", "/")}` +
    more.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("");
}
export const spotAddress = (fields) => `#spot&${new URLSearchParams(fields)}`;

/* Go to an address; `replaced` where the step is no place to come back to. */
export function goTo(hash, replaced = false) {
  if (replaced || hash === location.hash) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  follow();
}
/* Write an address without going there. */
export const keepAddress = (hash) => history.replaceState(null, "", hash);

function follow() {
  route.value = parsed(location.hash);
  if (["look", "review"].includes(route.value.tab)) lastDecision.value = location.hash || "#line=";
}
window.addEventListener("hashchange", follow);
