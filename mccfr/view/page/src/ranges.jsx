/* The ranges of the players who are left at a decision: combos, equity, EV, and a button that copies the range as text. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Choice } from "./controls.jsx";
import { amount, combos, percent, whole, within } from "./figures.js";
import { sentenceOf } from "./requests.js";
import { ask, equities, game, problem, spot, values } from "./study.js";

const NOTATIONS = {
  mccfr: "this program",
  pio: "PioSOLVER",
  "gto+": "GTO+, Flopzilla",
  gtowizard: "GTO Wizard",
  equilab: "Equilab, PokerStove",
};
const notation = signal("mccfr");

/* A button that copies a text to the clipboard.  text(): the text, or a promise of it */
export function Copy({ name = "Copy", title, text, id }) {
  const [done, setDone] = useState(false);
  async function copy() {
    let content = "";
    try { content = await text(); } catch (error) { problem.value = sentenceOf(error); return; }
    try {
      await navigator.clipboard.writeText(content);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch { window.prompt("Copy this text:", content); }
  }
  return <button id={id} type="button" title={title} onClick={copy}>{done ? "Copied" : name}</button>;
}

async function rangeText(player) {
  if (notation.value === "mccfr") return spot.value.ranges[player].text;
  const { line, board } = spot.value;
  return (await ask("/api/ranges", { line, board, notation: notation.value })).ranges[player].text;
}
function Range({ one, player }) {
  const equity = equities.value?.mean ? equities.value.mean[player] : null;
  const ev = values.value?.mean ? values.value.mean[player] : null;
  return (
    <div class="range">
      <span>{one.role}</span>
      <span>{game.value.square ? combos(one.combos) : `${whole(one.combos)} hands`}</span>
      <span>{equity !== null && `equity ${percent(equity)}`}</span>
      <span>{ev !== null && `EV ${amount(ev)}${within(values.value.mean_within[player])}`}</span>
      <Copy title={`Copy the range of ${one.role} as text`} text={() => rangeText(player)} />
    </div>
  );
}
export function Ranges() {
  const { ranges } = spot.value;
  return (
    <>
      <h2>Ranges</h2>
      {!ranges && <p class="quiet">Choose the board first.</p>}
      {ranges && (
        <>
          <p>
            <Choice id="notation" label="Copied for" value={notation.value} choices={Object.entries(NOTATIONS)}
              onChoose={(key) => { notation.value = key; }} />
          </p>
          <div id="ranges">{spot.value.left.map((player) => <Range key={player} {...{ one: ranges[player], player }} />)}</div>
        </>
      )}
    </>
  );
}
