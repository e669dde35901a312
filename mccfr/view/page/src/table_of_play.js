/* Hands against the strategy.  The server deals and knows all cards; what is said to it names the hand and the line that
   were seen, so that it is done once. */
import { signal } from "@preact/signals";
import { attempt } from "./requests.js";
import { ask, base, send, split, streetCards } from "./study.js";

export const table = signal(null);      // what /api/play says
export const busy = signal(false);
export const failed = signal("");
export const resolve = signal("");      // from which street on the strategy solves its hands again
export const drill = signal("");        // the line that every hand begins with
export const drills = signal([]);       // lines that there are
export const session = signal(0);       // number of the session on this page
let of = null;                          // number of the strategy at the table

async function say(request) {
  if (busy.value) return;
  busy.value = true;
  await attempt(failed, async () => {
    const found = await request();
    if (found.hand !== null) table.value = found;
  });
  busy.value = false;
}
/* The table of the strategy that is shown; a first hand is dealt where there is none. */
export async function openTable() {
  if (of === base.value && table.value) return;
  of = base.value;
  session.value += 1;
  [table.value, drill.value] = [null, ""];
  drills.value = (await ask("/api/play/drills").catch(() => ({ drills: [] }))).drills;
  await say(() => ask("/api/play"));
  if (!table.value && !failed.value) await sit();
}
/* Begin a session; `first` may have the seed and the number of its first hand. */
export function sit(first = {}) {
  session.value += 1;
  return say(() => send("/api/play/sit", { resolve: resolve.value, line: drill.value, ...first }));
}
export const act = (action) => say(() => send("/api/play/act", { hand: table.value.hand, line: table.value.line, action }));
export const deal = () => say(() => send("/api/play/deal", { hand: table.value.hand }));
/* Deal the hand of a mistake again: in this session, where it is of it and a hand is over, else in its own. */
export function dealAgain({ seed, hand, drill: line }) {
  if (seed === table.value.seed && isOver()) return say(() => send("/api/play/again", { hand }));
  drill.value = line;
  return sit({ seed, hand });
}

export const isOver = () => table.value.result !== null;
/* The board of an action of the hand's log. */
export const boardAt = (one) => split(table.value.board).slice(0, streetCards(one.street)).join("");
