// acpc_bot.mjs: plays a policy of two-player no-limit hold'em at a dealer of the ACPC protocol.  See docs/bots.md.
// Run: node acpc_bot.mjs POLICY HOST PORT, with look_up.mjs in the same folder.
import { execFileSync } from "node:child_process";
import { connect } from "node:net";

const [policy, host, port] = process.argv.slice(2);
const reader = new URL("look_up.mjs", import.meta.url).pathname;

/** Return the actions at a decision and their probabilities: [["f", 0.1], ["c", 0.5], ["r900", 0.4]]. */
function lookUp(line, hand, board, number) {
  const out = execFileSync("node", [reader, policy, line, hand, board, number], { encoding: "utf8" });
  return [...out.matchAll(/^([fc]|r\S+) (\S+)$/gm)].map(([, action, share]) => [action, Number(share)]);
}

/** Draw an action by its probability. */
function draw(actions) {
  let left = Math.random() * actions.reduce((sum, [, share]) => sum + share, 0);
  return (actions.find(([, share]) => (left -= share) < 0) ?? actions.at(-1))[0];
}

/** Return the action for the state MATCHSTATE:position:number:line:cards; null if the hand is over or the opponent acts. */
function answer(state) {
  const [, position, number, line, cards] = state.split(":");
  const [hands, ...streets] = cards.split("/");
  const hand = hands.split("|")[position];
  const [street, actions] = [line.split("/").length - 1, line.split("/").at(-1).match(/[cf]|r\d+/g) ?? []];
  const toAct = (actions.length + (street === 0 ? 1 : 0)) % 2; // position 0, the big blind, acts second before the flop
  const over = line.includes("f") || hands.split("|").every((each) => each); // a fold, or both hands are shown
  return over || toAct !== Number(position) ? null : draw(lookUp(line, hand, streets.join(""), number));
}

const socket = connect(Number(port), host, () => socket.write("VERSION:2.0.0\r\n"));
let text = "";
socket.on("data", (bytes) => {
  const lines = (text + bytes).split(/\r?\n/);
  text = lines.pop();
  for (const state of lines.filter((each) => each.startsWith("MATCHSTATE"))) {
    const action = answer(state);
    if (action) socket.write(`${state}:${action}\r\n`);
  }
});
