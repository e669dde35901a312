/* State of the form of a spot: its fields, ranges and solution. */
import { batch, signal } from "@preact/signals";
import { keepAddress, route, spotAddress } from "./address.js";
import { CLASSES } from "./cards.jsx";
import { attempt, get, isSilence, pause, post, sentenceOf } from "./requests.js";
import { game } from "./study.js";

export const SIDES = { oop: "Out of position", ip: "In position" };
const POLL = 500;               // milliseconds between two requests for the solution's state
const NAMES = ["board", "oop", "ip", "pot", "stack", "bets", "raises", "donk", "allin_spr", "rake", "rake_cap", "to", "locks"];
const OF_LINE = ["board", "oop", "ip", "pot", "stack"];  // fields that a strategy's line determines

export const fields = signal(Object.fromEntries(NAMES.map((name) => [name, ""])));
export const line = signal("");           // the strategy's line at which the spot begins; "": the user types the spot
const of = signal("0");                   // number or run of that strategy
export const fromText = signal("");       // sentence on where the spot comes from
export const ranges = signal({});         // by side, the server's reading of the range: {weights, combos} or {wrong}
export const state = signal(null);        // answer of /api/spots
export const failed = signal("");
export const tree = signal(null);         // the solved spot whose actions can be locked
let watching = 0;                         // number of the newest call of watch(); older calls end
const lastReading = {};                   // by side, promise of the last request; the next one waits for it

/* --- fields --- */

const filledFields = () => Object.fromEntries(NAMES.map((name) => [name, fields.value[name].trim()]).filter(([, text]) => text));
const parameters = () => ({ ...filledFields(), ...(line.value ? { line: line.value, of: of.value } : {}) });
export const address = () => spotAddress(parameters());
export function setField(name, text) {
  fields.value = { ...fields.value, [name]: text };
  if (OF_LINE.includes(name) && line.value) {
    line.value = "";
    fromText.value = "Changed: ranges, pot and stack are now those in the form. Bets are half the pot unless you type others.";
  }
  keepAddress(address());
}
/* Fill in the form from the parameters of an address. */
export async function fill(given) {
  batch(() => {
    fields.value = Object.fromEntries(NAMES.map((name) => [name, given.get(name) || ""]));
    line.value = given.get("line") || "";
    of.value = given.get("of") || "0";
    fromText.value = "";
    if (game.value?.asked) tree.value = game.value.of;
  });
  if (line.value) await fillFromLine();
  for (const side of Object.keys(SIDES)) readRange(side);
}
/* Without an address, keep the fields; if all are empty, fill in those of the spot that was solved last. */
export async function fillFromLast() {
  const last = await get("/api/spots").catch(() => null);  // an error if no spot was solved yet
  await fill(new URLSearchParams(Object.keys(filledFields()).length || !last ? parameters() : last.asked));
}
async function fillFromLine() {
  const at = { of: of.value };
  try {
    const [about, there] = await Promise.all([get("/api/game", at),
      get("/api/spot", { ...at, line: line.value, board: fields.value.board })]);
    fields.value = {
      ...fields.value,
      ...Object.fromEntries(Object.keys(SIDES).map((side, place) => [side, there.ranges[there.left[place]].text])),
      pot: String(there.pot_chips),
      stack: there.behind_chips ? String(there.behind_chips[there.left[0]]) : "",
    };
    fromText.value = `After ${line.value} of ${about.title}, with the strategy's own bet sizes unless you type others.`;
  } catch (error) {
    line.value = "";
    failed.value = sentenceOf(error);
  }
}

/* --- ranges --- */

/* Let the server read a text of hands, and set the weight of some classes if given.  Resolves to {text, weights, combos} or
   {wrong}. */
export async function readHands(text, classes, weight) {
  const painted = classes ? { classes: classes.join(), weight: String(weight) } : {};
  try {
    return await post("/api/spots/range", { range: text, board: fields.value.board.trim(), ...painted });
  } catch (error) { return { wrong: sentenceOf(error) }; }
}
/* Let the server read a side's range, after the earlier requests of this side.  classes, weight: as in readHands */
export function readRange(side, classes, weight) {
  lastReading[side] = (lastReading[side] || Promise.resolve()).then(async () => {
    const before = fields.value[side], found = await readHands(before, classes, weight);
    ranges.value = { ...ranges.value, [side]: { ...ranges.value[side], wrong: "", ...found } };
    if (classes && !found.wrong && fields.value[side] === before) setField(side, found.text);  // unless the user has typed meanwhile
  });
}
export function setBoard(text) {
  setField("board", text);
  for (const side of Object.keys(SIDES)) readRange(side);
}
/* Return a copy of a range's reading with a new weight of a class, shown until the server answers. */
export const painted = (found, name, weight) =>
  ({ ...found, weights: (found?.weights || CLASSES.map(() => 0)).map((old, place) => (CLASSES[place] === name ? weight : old)) });
export function paintCell(side, name, weight) {
  ranges.value = { ...ranges.value, [side]: painted(ranges.value[side], name, weight) };
}

/* --- solving --- */

export function solve() {
  const order = parameters();
  keepAddress(address());
  if (line.value) for (const name of OF_LINE) if (name !== "board") delete order[name];
  attempt(failed, async () => {
    state.value = await post("/api/spots/solve", order);
    watch();
  });
}
export const stop = () => post("/api/spots/stop", {});
/* Request the solution's state again and again until it is done, while the form is shown. */
export async function watch() {
  const number = ++watching;
  let silent = false;
  while (number === watching && route.value.tab === "spot") {
    const found = await get("/api/spots").catch((error) => error);  // an error if no spot was solved yet
    if (number !== watching) return;
    if (silent) failed.value = "";
    silent = isSilence(found);
    if (silent) failed.value = sentenceOf(found);
    else state.value = found instanceof Error ? null : found;
    if (state.value && state.value.of !== null) tree.value = state.value.of;
    if (!silent && (!state.value || state.value.done)) return;
    await pause(POLL);
  }
}
