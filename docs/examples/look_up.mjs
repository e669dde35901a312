// look_up.mjs: what a policy of whole hold'em plays.  node look_up.mjs POLICY LINE HAND [BOARD]
import { closeSync, existsSync, openSync, readFileSync, readSync } from "node:fs";

const [policy, line, hand, board = ""] = process.argv.slice(2);
const texts = (name) => JSON.parse(readFileSync(`${policy}/${name}.json`, "utf8"));

/** The number at [row, column] of a .npy file; of a list, at [column]. */
function cell(name, row, column) {
  const file = openSync(`${policy}/${name}.npy`);
  const bytes = (start, count) => {
    const found = Buffer.alloc(count);
    if (readSync(file, found, 0, count, start) !== count) throw new Error(`${name} is too short`);
    return found;
  };
  const length = bytes(8, 2).readUInt16LE(0);
  const header = bytes(10, length).toString("latin1");
  const [, kind, size] = header.match(/'descr': '.(\w)(\d)'/);
  const width = Number(header.match(/'shape': \(\d+, (\d+)\)/)?.[1] ?? 0);
  const found = bytes(10 + length + (row * width + column) * size, Number(size));
  closeSync(file);
  if (kind === "f") return size === "4" ? found.readFloatLE(0) : found.readDoubleLE(0);
  return kind === "i" ? found.readIntLE(0, Math.min(size, 6)) : found.readUIntLE(0, Number(size));
}

const cards = (named) =>
  (named.match(/../g) ?? [])
    .map((card) => 4 * "23456789TJQKA".indexOf(card[0].toUpperCase()) + "cdhs".indexOf(card[1].toLowerCase()))
    .sort((a, b) => a - b);
if (!/^([2-9TJQKA][cdhs]){2,7}$/i.test(hand + board) || new Set(cards(hand + board)).size * 2 < (hand + board).length) {
  throw new Error(`${hand} on ${board || "no board"}: cards are written as Kc7d2s, and each is there once`);
}
const choose = (n, k) => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k);

const node = texts("tree_line").indexOf(line);
const names = ["first", "count", "slot", "row", "player", "street"];
const [first, count, slot, row, player, street] = names.map((name) => cell(`tree_${name}`, 0, node));
const [low, high] = cards(hand);
let [canonical, permutation] = [0, 0];
if (board) {
  const rank = cards(board).reduce((sum, card, place) => sum + choose(card, place + 1), 0);
  const location = cell(`deck_location_${board.length / 2}`, 0, rank);
  [canonical, permutation] = [Math.floor(location / 32), location % 32];
}
const combination = cell("deck_hole_permutation", permutation, (high * (high - 1)) / 2 + low);
const bucket = cell(`deck_buckets_street${street}`, canonical, combination);
const reached = cell(`weight_street${street}_player${player}`, bucket, row) > 0; // else: play uniformly
const shares = Array.from({ length: count }, (_, k) =>
  reached ? cell(`probability_street${street}_player${player}`, bucket, slot + k) : 1,
);
const total = shares.reduce((sum, share) => sum + share, 0);
const labels = texts("tree_label").slice(first, first + count);
labels.forEach((label, k) => console.log(label, (shares[k] / total).toFixed(9)));
if (existsSync(`${policy}/values_root_street${street}.npy`)) {  // of `export --values`, where a street begins
  const header = readFileSync(`${policy}/values_root_street${street}.npy`).toString("latin1", 10);
  const count = Number(header.match(/'shape': \((\d+)/)[1]);
  const column = Array.from({ length: count }, (_, k) => cell(`values_root_street${street}`, 0, k)).indexOf(node);
  if (column >= 0) console.log("value", cell(`value_street${street}_player${player}`, bucket, column).toFixed(6));
}
