/* State of the table at which the user plays hands against the strategy.  The server deals the cards.  A request to act
   names the hand and the line that the page shows, so that the server executes a repeated request once. */
import { signal } from "@preact/signals";
import { attempt } from "./requests.js";
import { ask, base, send, split, streetCards } from "./study.js";

export const table = signal(null);      // answer of /api/play
export const busy = signal(false);
export const failed = signal("");
export const resolve = signal("");      // street from which on the strategy re-solves its hands; "": never
export const drill = signal("");        // line with which every hand begins; "": the first action
export const drills = signal([]);       // lines that the user can choose
export const session = signal(0);       // number of the session on this page
let of = null;                          // number of the strategy at the table

async function update(request) {
  if (busy.value) return;
  busy.value = true;
  await attempt(failed, async () => {
    const found = await request();
    if (found.hand !== null) table.value = found;
  });
  busy.value = false;
}
/* Open the table of the shown strategy, and begin a session if it has none. */
export async function openTable() {
  if (of === base.value && table.value) return;
  of = base.value;
  session.value += 1;
  [table.value, drill.value] = [null, ""];
  drills.value = (await ask("/api/play/drills").catch(() => ({ drills: [] }))).drills;
  await update(() => ask("/api/play"));
  if (!table.value && !failed.value) await sit();
}
/* Begin a session.  first: seed and number of its first hand, {seed, hand}; {}: the server's choice */
export function sit(first = {}) {
  session.value += 1;
  return update(() => send("/api/play/sit", { resolve: resolve.value, line: drill.value, ...first }));
}
export const act = (action) => update(() => send("/api/play/act", { hand: table.value.hand, line: table.value.line, action }));
export const deal = () => update(() => send("/api/play/deal", { hand: table.value.hand }));
/* Deal the hand of a mistake again: in this session if its seed is the same and no hand is running, else in a new session. */
export function dealAgain({ seed, hand, drill: line }) {
  if (seed === table.value.seed && isOver()) return update(() => send("/api/play/again", { hand }));
  drill.value = line;
  return sit({ seed, hand });
}

export const isOver = () => table.value.result !== null;
/* Return the board at an action of the hand's log. */
export const boardAt = (one) => split(table.value.board).slice(0, streetCards(one.street)).join("");
