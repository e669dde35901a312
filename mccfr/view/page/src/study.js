/* State of the decision that the page shows, and the requests that load it. */
import { batch, computed, signal } from "@preact/signals";
import { decisionAddress, goTo, route } from "./address.js";
import { cardsOf } from "./cards.jsx";
import { unit } from "./figures.js";
import { get, isSilence, pause, post, sentenceOf } from "./requests.js";

export const ALL = -1, SOLVED = "solved", NONE = "";
const POLL = 400;                 // milliseconds between two requests for the state of a solution

export const base = signal("0");          // the shown strategy: its number, or the run of a solved spot
export const game = signal(null);         // answer of /api/game on it
export const spot = signal(null);         // the shown decision: answer of /api/spot
export const equities = signal(null);     // its equities; null until they are loaded
export const values = signal(null);       // its expected values; null until they are loaded
export const beside = signal(NONE);       // the strategy to compare with: its number or run, SOLVED or NONE
export const other = signal(null);        // the decision of that strategy; {problem} if it has none
export const solved = signal(null);       // the decision solved again: answer of /api/solve
export const chosen = signal(ALL);        // the cell of the grid whose hands are listed, or ALL
export const wishedView = signal("strategy");  // the view that the user chose; shown if the decision has it
export const problem = signal("");
const cards = signal([]);                 // all board cards chosen so far, kept when the user goes back to an earlier street
let newest = 0;                           // number of the newest request: answers to older ones are dropped

/* True with three and more players, for whom the server computes no EVs of hands. */
export const isMany = computed(() => game.value?.roles.length > 2);
/* The players who are left if there are two, else null: equities and solving need two players. */
export const pair = computed(() => (spot.value?.left.length === 2 ? spot.value.left : null));
export const compared = computed(() => (other.value?.classes ? other.value : null));
export const views = computed(() => {
  if (!spot.value) return [];
  const square = game.value.square;
  return [["strategy", `${spot.value.role}'s strategy`],
    ...(compared.value ? [["difference", "Difference"]] : []),
    ...spot.value.left.map((player) => [player, `${game.value.roles[player]}'s range`]),
    ...(square && equities.value?.equity ? [["equity", "Equity"]] : []),
    ...(square && values.value?.hands ? [["ev", "EV"]] : [])];
});
export const view = computed(() =>
  views.value.some(([key]) => key === wishedView.value) ? wishedView.value : "strategy");
/* The player whose hands are listed. */
export const listedPlayer = computed(() => (typeof view.value === "number" ? view.value : spot.value.player));

/* --- cards and lines --- */

export const split = (text) => cardsOf(text, Math.max(...game.value.deck.map((name) => name.length), 1));
export const streetCards = (street) => game.value.streets[street].cards;
export const firstCards = () => (game.value.first_board ? split(game.value.first_board) : []);
export const neededCards = () => streetCards(spot.value.street);
const lineStreet = (line) => (line.match(/\//g) || []).length;
/* Return the board after a line: the chosen cards of its street, or of the latest earlier street with enough cards. */
export function boardOf(line) {
  const street = Math.min(lineStreet(line), game.value.streets.length - 1);
  let count = streetCards(street);
  for (let earlier = street; cards.value.length < count && earlier > 0; earlier--) count = streetCards(earlier - 1);
  return cards.value.slice(0, count).join("");
}

/* Return pairs of number and name of the strategies to compare with. */
export const otherStrategies = () => game.value.strategies.slice(1);
/* Return the name of a strategy; undefined if the loaded list of strategies does not have it. */
export const strategyName = (which) => game.value.strategies.find(([number]) => String(number) === String(which))?.[1];

/* --- where to go --- */

export const addressOf = (line, board) => decisionAddress({
  line, board, of: base.value, review: route.value.review, beside: beside.value === SOLVED ? NONE : beside.value,
});
export const go = (line, board = boardOf(line), replaced = false) => goTo(addressOf(line, board), replaced);
export const take = (action) => { if (action && !action.ends) go(action.line); };
export const back = () => { if (spot.value?.path.length) go(spot.value.path.at(-1).line); };
/* Open the decision on a board that is complete for its street. */
export function chooseBoard(names) {
  cards.value = names;
  go(spot.value.line, names.join(""), true);
}
export function compareWith(which) {
  beside.value = which;
  go(spot.value.line, spot.value.board || boardOf(spot.value.line), true);
}

/* --- requests --- */

export const ask = (path, query) => get(path, { of: base.value, ...query });
export const send = (path, body) => post(path, { of: base.value, ...body });

/* Show another strategy.  of: number of a strategy that the page was opened with, or the run of a solved spot */
export async function openStrategy(of) {
  if (game.value && base.value === of) return;
  const found = await get("/api/game", { of });
  batch(() => {
    game.value = found;
    base.value = of;
    unit.value = { name: found.unit, chips: found.unit_chips };
    cards.value = found.first_board ? split(found.first_board) : [];
    [spot.value, solved.value, beside.value, chosen.value, wishedView.value] = [null, null, NONE, ALL, "strategy"];
  });
}

/* Show a decision, then load its equities and EVs, which take longer.
   after(spot, still): called once the decision is shown; still(): false after a newer request */
export async function openDecision({ line, board, beside: wanted, of }, after) {
  const number = ++newest, still = () => number === newest, at = { line, board };
  try {
    await openStrategy(of);
    /* The server lists a solved spot for comparison only after a request has opened it. */
    if (wanted && strategyName(wanted) === undefined && await get("/api/game", { of: wanted }).catch(() => null)) {
      game.value = await get("/api/game", { of: base.value });
    }
    if (!still()) return;
    if (wanted !== beside.value && beside.value !== SOLVED) {
      beside.value = otherStrategies().some(([number]) => String(number) === wanted) ? wanted : NONE;
    }
    const given = split(board);
    if (given.join("") !== cards.value.slice(0, given.length).join("")) cards.value = given;
    const found = await ask("/api/spot", at);
    if (!still()) return;
    show(found);
    problem.value = "";
    const more = after(found, still);
    document.body.dataset.ready = addressOf(found.line, found.board);
    if (!found.missing_cards) await complete(at, still);
    await more;
    if (still()) document.body.dataset.complete = addressOf(found.line, found.board);
  } catch (error) {
    if (!still()) return;
    if (!game.value && !isSilence(error)) { goTo("#spot", true); return; }  // the page has no strategy
    if (!spot.value && !isSilence(error)) {  // an invalid link: show the first decision and the error
      cards.value = firstCards();
      show(await ask("/api/spot", { line: "", board: "" }));
      complete({ line: "", board: "" }, still);
    }
    problem.value = sentenceOf(error);
  }
}
function show(found) {
  batch(() => {
    spot.value = found;
    equities.value = values.value = other.value = null;
    const there = split(found.board || "");
    if (there.length) cards.value = [...there, ...cards.value.slice(there.length)];
    if (game.value.square && chosen.value !== ALL && found.classes && !found.classes.combos[chosen.value]) {
      chosen.value = ALL;
    }
  });
}
/* Load the decision of the compared strategy, the equities and the EVs. */
async function complete(at, still) {
  if (solved.value && (solved.value.line !== at.line || solved.value.board !== at.board)) solved.value = null;
  if (beside.value === SOLVED && !solved.value) beside.value = NONE;
  if (beside.value === SOLVED) other.value = solved.value.result && { ...spot.value, ...solved.value.result };
  else if (beside.value) {
    const found = await ask("/api/spot", { ...at, of: beside.value }).catch((error) => ({ problem: error.message }));
    if (!still()) return;
    other.value = found;
  }
  const found = await ask("/api/equity", at);
  if (!still()) return;
  equities.value = found;
  const evs = await ask("/api/values", at);
  if (still()) values.value = evs;
}
/* Solve the decision again with its ranges, and compare each intermediate result with the strategy. */
export async function solveAgain() {
  const { line, board } = spot.value, number = newest, still = () => number === newest;
  /* Changes with each new result; a result with EVs follows the one with the same frequencies. */
  const stage = () => solved.value.result && solved.value.result.iterations + (solved.value.result.values ? " EV" : "");
  try {
    solved.value = await send("/api/solve", { line, board });
    while (!solved.value.done) {
      const before = stage();
      const found = await ask("/api/solve", {});
      if (!still()) return;
      solved.value = found;
      if (found.result && stage() !== before) {
        batch(() => {
          beside.value = SOLVED;
          other.value = { ...spot.value, ...found.result };
        });
      }
      if (!found.done) await pause(POLL);
    }
  } catch (error) { problem.value = sentenceOf(error); }
}
export const stopSolving = () => send("/api/solve/stop", {});
