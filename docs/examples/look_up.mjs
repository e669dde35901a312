// look_up.mjs: prints what a policy of no-limit hold'em does with a hand after any legal betting.  See docs/bots.md.
// Run: node look_up.mjs POLICY LINE HAND [BOARD [NUMBER]].  Each line of output is an action and its probability.
// A bet size that the tree lacks can stand for two of its sizes.  With the NUMBER of the hand in a match one of them is
// drawn, the same in each call; without it both count.
import { existsSync, openSync, readFileSync, readSync } from "node:fs";
import { inflateSync } from "node:zlib";

const [policy, line, hand, board = "", played] = process.argv.slice(2);
const texts = (name) => JSON.parse(readFileSync(`${policy}/${name}.json`, "utf8"));

const files = {};
/** Open a .npy file.  Return {rows, bytes(first, count), cell(row, column)}: the number of rows, the bytes of cells, and one
    number (of a one-dimensional array in row 0). */
function array(name) {
  if (files[name]) return files[name];
  const file = openSync(`${policy}/${name}.npy`);
  const read = (start, count) => {
    const found = Buffer.alloc(count);
    if (readSync(file, found, 0, count, start) !== count) throw new Error(`${name} is too short`);
    return found;
  };
  const length = read(8, 2).readUInt16LE(0);
  const header = read(10, length).toString("latin1");
  const [, kind, digits] = header.match(/'descr': '.(\w)(\d)'/);
  const [, rows, width = 0] = header.match(/'shape': \((\d+),(?: (\d+))?/).map(Number);
  const size = Number(digits);
  const bytes = (first, count) => read(10 + length + first * size, count * size);
  const cell = (row, column) => {
    const found = bytes(row * (width || 0) + column, 1);
    if (kind === "f") return size === 4 ? found.readFloatLE(0) : found.readDoubleLE(0);
    return kind === "i" ? found.readIntLE(0, Math.min(size, 6)) : found.readUIntLE(0, size);
  };
  return (files[name] = { rows, bytes, cell });
}
const cell = (name, row, column) => array(name).cell(row, column);
const tree = (name, node) => cell(`tree_${name}`, 0, node);

// --- from cards to a bucket ---

/** Parse cards into numbers 4 * rank + suit, in ascending order. */
const cards = (text) =>
  (text.match(/../g) ?? [])
    .map((card) => 4 * "23456789TJQKA".indexOf(card[0].toUpperCase()) + "cdhs".indexOf(card[1].toLowerCase()))
    .sort((a, b) => a - b);
if (!/^([2-9TJQKA][cdhs]){2,7}$/i.test(hand + board) || new Set(cards(hand + board)).size * 2 < (hand + board).length) {
  throw new Error(`${hand} on ${board || "no board"}: cards are written as Kc7d2s, and a card may be there only once`);
}
const choose = (n, k) => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k);

/** Return the bucket of the hand on a board. */
function bucketOf(street, board) {
  const [low, high] = cards(hand);
  let [canonical, permutation] = [0, 0];
  if (board) {
    const rank = cards(board).reduce((sum, card, place) => sum + choose(card, place + 1), 0);
    const location = cell(`deck_location_${board.length / 2}`, 0, rank);
    [canonical, permutation] = [Math.floor(location / 32), location % 32];
  }
  const [start, end] = [0, 1].map((k) => cell(`board_starts_street${street}`, 0, canonical + k));
  const row = inflateSync(array(`deck_buckets_street${street}`).bytes(start, end - start));
  const size = row.length / 1326; // one, two or four bytes for each of the 1,326 hands
  return row.readUIntLE(size * cell("deck_hole_permutation", permutation, (high * (high - 1)) / 2 + low), size);
}

// --- the betting at the table; amounts are chips of the whole hand ---

const { game, provenance } = texts("meta");
if (provenance.share_of_run < 1) console.error(`warning: the policy is unfinished, after ${100 * provenance.share_of_run} % of its run`);
const count = game.seats ?? 2;
if (count > 6) throw new Error(`${policy} has more than six players`);
if ([1, 2, 3].some((street) => existsSync(`${policy}/history_street${street}.npy`))) {
  throw new Error(`${policy} has buckets with recall, which this program does not look up`);
}
const players = Array.from({ length: count }, (_, player) => player);
const row = (name, node) => players.map((player) => cell(name, node, player));
const blinds = row("tree_put_in", 0);
const deadOf = players.map((player) => (count > 2 ? cell("tree_pots_dead", 0, player) : 0));
const dead = deadOf.reduce((sum, chips) => sum + chips, 0);
const stacks = players.map((player) => (game.stacks?.length ? game.stacks[player] : game.stack) - deadOf[player]);
const leastBet = game.blinds[1];
const leastCall = leastBet + (dead ? 0 : (game.ante ?? 0));
const whole = [...blinds, leastBet, Math.max(...stacks)].every(Number.isInteger);
const others = (player) => players.filter((other) => other !== player);

/** The state of the betting.  acted, folded: players; barred: players who have acted before a short all-in */
const start = { putIn: blinds, street: 0, acted: [], folded: [], barred: [], lastRaise: leastBet };
start.toAct = next(start, count === 2 ? 1 : 2);
/** Return the chips in the pot of a player after a call. */
function level({ putIn }) {
  return Math.max(leastCall, ...putIn);
}
/** Return true if the player to act faces a bet. */
function facing(state) {
  return state.putIn[state.toAct] < level(state);
}
function potAfterCall(state) {
  return state.putIn.reduce((sum, chips) => sum + chips, dead) + level(state) - state.putIn[state.toAct];
}
/** Return the opponents who have not folded. */
function opponents(state) {
  return others(state.toAct).filter((player) => !state.folded.includes(player));
}
/** Return the largest raise that an opponent can call, at least the smallest legal one. */
function allIn(state) {
  const largest = Math.max(level(state) + state.lastRaise, ...opponents(state).map((player) => stacks[player]));
  return Math.min(stacks[state.toAct], largest);
}
function mayRaise(state) {
  const [call, own] = [level(state), state.toAct];
  if (call >= stacks[own] || (state.barred.includes(own) && call - state.putIn[own] < state.lastRaise)) return false;
  return opponents(state).some((player) => stacks[player] > call);
}
/** Return the first player from `first` on who has to act, or -1. */
function next(state, first) {
  const order = players.map((step) => (first + step) % count);
  const left = order.filter((player) => state.putIn[player] < stacks[player] && !state.folded.includes(player));
  const found = left.find((player) => state.putIn[player] < level(state) || !state.acted.includes(player)) ?? -1;
  return left.length === 1 && state.putIn[found] >= Math.max(...state.putIn) ? -1 : found;
}
/** Return the state after an action: c, f, or r with the player's chips in the pot after the raise. */
function after(state, action, target) {
  const [own, call] = [state.toAct, level(state)];
  const result = { ...state, putIn: [...state.putIn], acted: [...state.acted, own] };
  if (action === "r") {
    const short = target - call < state.lastRaise && target >= stacks[own];
    Object.assign(result, { barred: short ? result.acted : [], lastRaise: Math.max(state.lastRaise, target - call) });
    result.putIn[own] = target;
  } else if (action === "c") result.putIn[own] = Math.min(call, stacks[own]);
  else result.folded = [...state.folded, own];
  if (result.folded.length === count - 1) return { ...result, toAct: -1 };
  result.toAct = next(result, (own + 1) % count);
  if (result.toAct >= 0 || state.street === 3) return result;
  const nextStreet = { ...result, street: state.street + 1, acted: [], barred: [], lastRaise: leastBet };
  return { ...nextStreet, toAct: next(nextStreet, 0) };
}

// --- from the betting to nodes of the tree; a reading { node, probability } is a node that the line can stand for ---

const labels = texts("tree_label");
const children = (node) => Array.from({ length: tree("count", node) }, (_, k) => tree("first", node) + k);
const decides = (node) => node >= 0 && tree("kind", node) === 0;
const child = (node, label) => children(node).find((each) => labels[each][0] === label);
/** Return the chips in the pot of the player whose action led to a node. */
const raisedTo = (node) => cell("tree_put_in", node, tree("player", tree("parent", node)));
/** Return the size of a raise in the tree as a share of the pot after a call. */
function sizeOf(node, raise) {
  const before = { putIn: row("tree_put_in", node), toAct: tree("player", node) };
  return (raisedTo(raise) - level(before)) / potAfterCall(before);
}
/** Return true if the raise to a node puts its player, or all opponents who call, all-in. */
const isAllIn = (node) => {
  const own = tree("player", tree("parent", node));
  return raisedTo(node) >= Math.min(stacks[own], Math.max(...others(own).map((player) => stacks[player])));
};
/** Return the child of a check or call, or without one of a fold; `folds`: of a fold, or without one of a check or call.
    Without both, return the first child, the smallest raise. */
const passed = (node, folds = false) => child(node, folds ? "f" : "c") ?? child(node, folds ? "c" : "f") ?? tree("first", node);

/** Return the players who have folded in the tree before a node. */
function foldedInTree(node) {
  const found = [];
  for (; node; node = tree("parent", node)) if (labels[node] === "f") found.push(tree("player", tree("parent", node)));
  return found;
}
/** Return true if an opponent who has not folded in the tree has put most chips in at the table. */
function hasBet(node, { putIn, toAct }) {
  const gone = foldedInTree(node);
  return others(toAct).some((player) => putIn[player] === Math.max(...putIn) && !gone.includes(player));
}
/** In a hand that ended by folds in the tree, find the last fold there that was a call at the table.  Return the smallest
    raise in its place, or -1. */
function withoutLastFold(node, { putIn, folded }) {
  for (let last = node; labels[node] === "f" && last; last = tree("parent", last)) {
    const [above, raise] = [tree("parent", last), child(tree("parent", last), "r")];
    const player = tree("player", above);
    const playsOn = !folded.includes(player) && putIn[player] > blinds[player];
    if (labels[last] === "f" && playsOn && raise !== undefined) return raise;
  }
  return -1;
}
/** Return the tree's decision of the player who acts at the table, from a reading's node on; -1 if there is none. */
function decisionAt(node, state) {
  while (node >= 0) {
    if (!decides(node)) {
      node = withoutLastFold(node, state);
      continue;
    }
    const [player, street] = [tree("player", node), tree("street", node)];
    if (street === state.street && player === state.toAct) return node;
    if (street > state.street || (street === state.street && foldedInTree(node).includes(state.toAct))) return -1;
    node = passed(node, state.folded.includes(player));
  }
  return -1;
}

/** Translate an action at the table: return the nodes that it can stand for after a reading, with probabilities. */
function outcomes(waiting, state, action, target) {
  const node = decisionAt(waiting, state);
  if (node < 0) return [[waiting, 1]];
  if (action === "f") return [[child(node, "f") ?? node, 1]];
  const raises = children(node).filter((each) => labels[each][0] === "r");
  if (action === "c" || !raises.length) return [[passed(node), 1]]; // without raises in the tree, a bet is a call
  const [last, share] = [raises.at(-1), (target - level(state)) / potAfterCall(state)];
  const asDeep = Math.max(target, raisedTo(last)) <= 2 * Math.min(target, raisedTo(last));
  const above = raises.findIndex((each) => sizeOf(node, each) >= share - 1e-9);
  if (above < 0 || (target >= allIn(state) && isAllIn(last) && asDeep)) return [[last, 1]];
  if (above === 0) return [[raises[0], 1]];
  const [small, large] = [sizeOf(node, raises[above - 1]), sizeOf(node, raises[above])];
  const lower = Math.max(0, ((large - share) * (1 + small)) / ((large - small) * (1 + share)));
  return lower < 1e-9 ? [[raises[above], 1]] : [[raises[above - 1], lower], [raises[above], 1 - lower]];
}

/** Translate an action of the tree to the table. */
function realAction(node, each, state) {
  const [before, checks] = [level(state), labels[each] === "c"];
  if (labels[each] === "f" || (checks && facing(state) && !hasBet(node, state))) return facing(state) ? "f" : "c";
  if (checks || !mayRaise(state)) return "c";
  if (isAllIn(each)) return `r${allIn(state)}`;
  const target = before + sizeOf(node, each) * potAfterCall(state);
  const least = Math.max(whole ? Math.floor(target + 0.5) : target, before + state.lastRaise);
  return `r${Math.min(least, stacks[state.toAct])}`;
}

/** Return a bucket's probability of each action at a decision. */
function strategy(node, bucket) {
  const block = `street${tree("street", node)}_player${tree("player", node)}`;
  const reached = cell(`weight_${block}`, bucket, tree("row", node)) > 0; // else: play uniformly
  const slot = tree("slot", node);
  const shares = children(node).map((_, k) => (reached ? cell(`probability_${block}`, bucket, slot + k) : 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

/** Return `outcomes` of an own action before the flop.  Several actions of the tree can be one at the table: a fold to a
    limp is a check.  The hand's probabilities are their weights. */
function ownOutcomes(waiting, state, action, target, bucket) {
  const node = decisionAt(waiting, state);
  const done = action === "r" ? `r${target}` : action;
  const same = node < 0 ? [] : children(node).map((each, k) => [each, k]).filter(([each]) => realAction(node, each, state) === done);
  const shares = same.length < 2 ? [] : same.map(([each, k]) => [each, strategy(node, bucket)[k]]);
  const total = shares.reduce((sum, [, share]) => sum + share, 0);
  if (!total) return outcomes(waiting, state, action, target);
  return shares.filter(([, share]) => share > 0).map(([each, share]) => [each, share / total]);
}

/** Draw one of the readings by its probability.  The random number is a hash of the hand's number and the action's place in
    the line, so each call draws the same. */
function drawReading(readings, place) {
  const mixed = Math.imul((Number(played) * 64 + place) ^ 0x5bd1e995, 0x9e3779b1) >>> 0;
  let left = ((Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) >>> 0) / 2 ** 32);
  const found = readings.find(({ probability }) => (left -= probability) < 0) ?? readings.at(-1);
  return [{ ...found, probability: 1 }];
}

const actions = [];
let state = start;
for (const [text] of line.matchAll(/r[\d.]+|[^/]/g)) {
  if (!/^(c|f|r[\d.]+)$/.test(text) || state.toAct < 0) throw new Error(`${line}: ${text} is not an action, or no player can act here`);
  actions.push([state, text[0], Number(text.slice(1))]);
  state = after(state, text[0], Number(text.slice(1)));
}
if (state.toAct < 0) throw new Error(`${line} leads to no decision`);
if (board.length / 2 !== (state.street ? state.street + 2 : 0)) throw new Error(`${board}: not as many cards as the street has`);
const first = bucketOf(0, "");
let readings = [{ node: 0, probability: 1 }];
for (const [place, [before, action, target]] of actions.entries()) {
  const translate = before.street === 0 && before.toAct === state.toAct ? ownOutcomes : outcomes;
  const merged = new Map();
  for (const { node, probability } of readings) {
    for (const [to, share] of translate(node, before, action, target, first)) {
      merged.set(to, (merged.get(to) ?? 0) + probability * share);
    }
  }
  readings = [...merged].map(([node, probability]) => ({ node, probability }));
  if (played) readings = drawReading(readings, place);
}

// --- the output ---

const bucket = bucketOf(state.street, board);
const answers = new Map();
for (const { node: waiting, probability } of readings) {
  const node = decisionAt(waiting, state);
  const committed = !decides(waiting) && labels[waiting] !== "f"; // the hand is over in the tree, not by a fold
  const calls = !foldedInTree(waiting).includes(state.toAct) && (committed || hasBet(waiting, state));
  const shares = node < 0 ? [1] : strategy(node, bucket);
  const realActions = node < 0 ? [calls || !facing(state) ? "c" : "f"] : children(node).map((each) => realAction(node, each, state));
  realActions.forEach((action, k) => answers.set(action, (answers.get(action) ?? 0) + probability * shares[k]));
}
const order = (action) => (action === "f" ? -1 : Number(action.slice(1)));
for (const action of [...answers.keys()].sort((a, b) => order(a) - order(b))) {
  console.log(action, answers.get(action).toFixed(9));
}
const roots = `values_root_street${state.street}`;
if (readings.length === 1 && existsSync(`${policy}/${roots}.npy`)) {  // `export --values` writes values of the first decisions of a street
  const column = Array.from({ length: array(roots).rows }, (_, k) => cell(roots, 0, k)).indexOf(decisionAt(readings[0].node, state));
  if (column >= 0) console.log("value", cell(`value_street${state.street}_player${state.toAct}`, bucket, column).toFixed(6));
}
