/* A spot that is typed or painted: the fields of its form, and its solution. */
import { batch, signal } from "@preact/signals";
import { keepAddress, route, spotAddress } from "./address.js";
import { CLASSES } from "./cards.jsx";
import { attempt, get, isSilence, pause, post, sentenceOf } from "./requests.js";
import { game } from "./study.js";

export const SIDES = { oop: "Out of position", ip: "In position" };
const POLL = 500;               // milliseconds between two looks at what is solved
const NAMES = ["board", "oop", "ip", "pot", "stack", "bets", "raises", "donk", "allin_spr", "rake", "rake_cap", "to", "locks"];
const OF_LINE = ["board", "oop", "ip", "pot", "stack"];  // what a strategy's line says

export const fields = signal(Object.fromEntries(NAMES.map((name) => [name, ""])));
export const line = signal("");           // a strategy's line that the spot is; "": it is typed
const of = signal("0");                   // that strategy
export const fromText = signal("");       // where the spot comes from
export const ranges = signal({});         // by side what the server says of the range: {weights, combos} or {wrong}
export const state = signal(null);        // what /api/spots says
export const failed = signal("");
export const tree = signal(null);         // the solved spot whose actions can be locked
let watching = 0;                         // number of the newest watch over the solution
const asked = {};                         // by side the last request, after which the next is sent

/* --- fields --- */

const filled = () => Object.fromEntries(NAMES.map((name) => [name, fields.value[name].trim()]).filter(([, text]) => text));
const parameters = () => ({ ...filled(), ...(line.value ? { line: line.value, of: of.value } : {}) });
export const address = () => spotAddress(parameters());
export function setField(name, text) {
  fields.value = { ...fields.value, [name]: text };
  if (OF_LINE.includes(name) && line.value) {
    line.value = "";
    fromText.value = "Changed: ranges, pot and stack are those typed here, bets half the pot unless given.";
  }
  keepAddress(address());
}
/* Fill the form in from an address; `at` in it is a line whose actions are to be locked. */
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
/* Without an address: the fields as they are, or those of the spot that was solved last. */
export async function fillFromLast() {
  const last = await get("/api/spots").catch(() => null);  // a refusal where nothing was solved yet
  await fill(new URLSearchParams(Object.keys(filled()).length || !last ? parameters() : last.asked));
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
    fromText.value = `After ${line.value} of ${about.title}, by its own bets unless others are given.`;
  } catch (error) {
    line.value = "";
    failed.value = sentenceOf(error);
  }
}

/* --- ranges --- */

/* Have the server read a text of hands, after some classes have been given a weight: {text, weights, combos} or {wrong}. */
export async function readHands(text, classes, weight) {
  const painted = classes ? { classes: classes.join(), weight: String(weight) } : {};
  try {
    return await post("/api/spots/range", { range: text, board: fields.value.board.trim(), ...painted });
  } catch (error) { return { wrong: sentenceOf(error) }; }
}
/* Read a side's range, one request after the other. */
export function readRange(side, classes, weight) {
  asked[side] = (asked[side] || Promise.resolve()).then(async () => {
    const before = fields.value[side], found = await readHands(before, classes, weight);
    ranges.value = { ...ranges.value, [side]: { ...ranges.value[side], wrong: "", ...found } };
    if (classes && !found.wrong && fields.value[side] === before) setField(side, found.text);  // unless somebody types
  });
}
export function setBoard(text) {
  setField("board", text);
  for (const side of Object.keys(SIDES)) readRange(side);
}
/* What is known of a range, with another weight of a class: to be shown until the server has read it. */
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
/* Follow the solution as long as the form is shown. */
export async function watch() {
  const number = ++watching;
  let silent = false;
  while (number === watching && route.value.tab === "spot") {
    const found = await get("/api/spots").catch((error) => error);  // an error where nothing was solved yet
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
