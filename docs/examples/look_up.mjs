// look_up.mjs: what a policy of no-limit hold'em plays, after any legal bets.  docs/bots.md describes the steps.
// node look_up.mjs POLICY LINE HAND [BOARD [NUMBER]]; with the NUMBER of a played hand, other sizes are drawn
import { existsSync, openSync, readFileSync, readSync } from "node:fs";
import { inflateSync } from "node:zlib";

const [policy, line, hand, board = "", played] = process.argv.slice(2);
const texts = (name) => JSON.parse(readFileSync(`${policy}/${name}.json`, "utf8"));

/** A .npy file: its number of rows, bytes of its cells, and the number at [row, column] (of a list, at [0, column]). */
const files = {};
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

// --- cards to bucket ---

const cards = (named) =>
  (named.match(/../g) ?? [])
    .map((card) => 4 * "23456789TJQKA".indexOf(card[0].toUpperCase()) + "cdhs".indexOf(card[1].toLowerCase()))
    .sort((a, b) => a - b);
if (!/^([2-9TJQKA][cdhs]){2,7}$/i.test(hand + board) || new Set(cards(hand + board)).size * 2 < (hand + board).length) {
  throw new Error(`${hand} on ${board || "no board"}: cards are written as Kc7d2s, and each is there once`);
}
const choose = (n, k) => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k);

function bucketOf(street) {
  const [low, high] = cards(hand);
  let [canonical, permutation] = [0, 0];
  if (board) {
    const rank = cards(board).reduce((sum, card, place) => sum + choose(card, place + 1), 0);
    const location = cell(`deck_location_${board.length / 2}`, 0, rank);
    [canonical, permutation] = [Math.floor(location / 32), location % 32];
  }
  const [start, end] = [0, 1].map((k) => cell(`board_starts_street${street}`, 0, canonical + k));
  const row = inflateSync(array(`deck_buckets_street${street}`).bytes(start, end - start));
  const size = row.length / 1326; // one, two or four bytes for each combination
  return row.readUIntLE(size * cell("deck_hole_permutation", permutation, (high * (high - 1)) / 2 + low), size);
}

// --- betting to nodes: readings of a line, { node, closed, probability }; node -1: call, which leads to `closed` ---

const { game, provenance } = texts("meta");
if (provenance.share_of_run < 1) console.error(`unfinished: ${100 * provenance.share_of_run} % of its run`);
if (game.seats > 2) throw new Error(`${policy}: this reader is for two players`);
const [stack, leastBet] = [game.stack, game.blinds[1]];
const labels = texts("tree_label");
const children = (node) => Array.from({ length: tree("count", node) }, (_, k) => tree("first", node) + k);
const decides = (node) => node >= 0 && tree("kind", node) === 0;
const level = (node) => Math.max(cell("tree_put_in", node, 0), cell("tree_put_in", node, 1));
/** The size of a raise in the tree, as a share of the pot after the call. */
const sizeOf = (node, child) => (cell("tree_put_in", child, tree("player", node)) - level(node)) / (2 * level(node));

const hold = { putIn: [cell("tree_put_in", 0, 0), cell("tree_put_in", 0, 1)], toAct: 1, street: 0, acted: false, lastRaise: leastBet };

function outcomes({ node, closed }, action, target) {
  if (action === "c" && closed >= 0) return [[closed, -1, 1]];
  if (!decides(node)) return [[node, closed, 1]];
  const raises = children(node).filter((child) => labels[child][0] === "r");
  const call = children(node).find((child) => labels[child] === "c");
  if (action === "f") return [[children(node).find((child) => labels[child] === "f"), -1, 1]];
  if (action === "c") return [[call ?? raises[0], -1, 1]];
  if (!raises.length) {
    const closes = decides(call) && tree("street", call) !== tree("street", node); // a bet is taken for a call
    return closes ? [[-1, call, 1]] : [[call, -1, 1]];
  }
  const [before, last] = [Math.max(...hold.putIn), raises.at(-1)];
  const share = (target - before) / (2 * before);
  const above = raises.findIndex((child) => sizeOf(node, child) >= share - 1e-9);
  if (above < 0 || (target >= stack && level(last) >= stack)) return [[last, -1, 1]];
  if (above === 0) return [[raises[0], -1, 1]];
  const [small, large] = [sizeOf(node, raises[above - 1]), sizeOf(node, raises[above])];
  const lower = Math.max(0, ((large - share) * (1 + small)) / ((large - small) * (1 + share)));
  if (lower < 1e-9) return [[raises[above], -1, 1]];
  return [[raises[above - 1], -1, lower], [raises[above], -1, 1 - lower]];
}

/** One of the readings, drawn by its probability; the same one whenever the hand comes here. */
function drawn(readings, place) {
  const mixed = Math.imul((Number(played) * 64 + place) ^ 0x5bd1e995, 0x9e3779b1) >>> 0;
  let left = ((Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) >>> 0) / 2 ** 32);
  const found = readings.find(({ probability }) => (left -= probability) < 0) ?? readings.at(-1);
  return [{ ...found, probability: 1 }];
}

let readings = [{ node: 0, closed: -1, probability: 1 }];
let place = 0;
for (const [action] of line.matchAll(/r[\d.]+|[^/]/g)) {
  if (!/^(c|f|r[\d.]+)$/.test(action) || hold.toAct < 0) throw new Error(`${line}: ${action} is no action here`);
  const [target, before] = [Number(action.slice(1)), Math.max(...hold.putIn)];
  const merged = new Map();
  for (const reading of readings) {
    for (const [node, closed, share] of outcomes(reading, action[0], target)) {
      const found = merged.get(`${node} ${closed}`) ?? { node, closed, probability: 0 };
      merged.set(`${node} ${closed}`, { ...found, probability: found.probability + reading.probability * share });
    }
  }
  readings = [...merged.values()];
  if (played) readings = drawn(readings, place++);
  if (action[0] === "r") hold.lastRaise = Math.max(hold.lastRaise, target - before);
  if (action !== "f") hold.putIn[hold.toAct] = action === "c" ? before : target;
  if (action[0] === "r" || (action === "c" && !hold.acted && before < stack)) {
    [hold.toAct, hold.acted] = [1 - hold.toAct, true];
  } else {
    const over = action === "f" || before >= stack || hold.street === 3;
    Object.assign(hold, { street: hold.street + 1, toAct: over ? -1 : 0, acted: false, lastRaise: leastBet });
  }
}
if (hold.toAct < 0) throw new Error(`${line} leads to no decision`);

// --- the answer ---

/** What to do in the game for a tree's action. */
function realAction(node, child) {
  const before = Math.max(...hold.putIn);
  if (labels[child] === "f") return hold.putIn[hold.toAct] < before ? "f" : "c";
  if (labels[child] === "c" || before >= stack) return "c";
  if (level(child) >= stack) return `r${stack}`;
  const target = before + sizeOf(node, child) * 2 * before;
  const whole = Number.isInteger(stack) && Number.isInteger(leastBet) ? Math.floor(target + 0.5) : target;
  return `r${Math.min(Math.max(whole, before + hold.lastRaise), stack)}`;
}

if (board.length / 2 !== (hold.street ? hold.street + 2 : 0)) throw new Error(`${board}: not as many cards as the street has`);
const bucket = bucketOf(hold.street);
const answers = new Map();
for (const { node, probability } of readings) {
  const block = `street${hold.street}_player${decides(node) ? tree("player", node) : 0}`;
  const actions = decides(node) ? children(node).map((child) => realAction(node, child)) : ["c"];
  const reached = decides(node) && cell(`weight_${block}`, bucket, tree("row", node)) > 0; // else: play uniformly
  const shares = actions.map((_, k) => (reached ? cell(`probability_${block}`, bucket, tree("slot", node) + k) : 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  actions.forEach((action, k) => answers.set(action, (answers.get(action) ?? 0) + (probability * shares[k]) / total));
}
const order = (action) => (action === "f" ? -1 : Number(action.slice(1)));
for (const action of [...answers.keys()].sort((a, b) => order(a) - order(b))) {
  console.log(action, answers.get(action).toFixed(9));
}
const roots = `values_root_street${hold.street}`;
if (readings.length === 1 && existsSync(`${policy}/${roots}.npy`)) {  // of `export --values`, where a street begins
  const column = Array.from({ length: array(roots).rows }, (_, k) => cell(roots, 0, k)).indexOf(readings[0].node);
  if (column >= 0) console.log("value", cell(`value_street${hold.street}_player${hold.toAct}`, bucket, column).toFixed(6));
}
