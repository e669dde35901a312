/* Keyboard shortcuts of the page.  They work wherever the focus is, except in text fields. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { goTo, route } from "./address.js";
import { keysOf } from "./actions.jsx";
import { closePicker, isPicking, openPicker, randomBoard, typeCard } from "./board.jsx";
import { cellBeside, STEPS } from "./grid.jsx";
import { playKey } from "./play.jsx";
import { ALL, back, chosen, game, go, spot, take, view, views, wishedView } from "./study.js";
import { turnTheme } from "./theme.js";

export const helping = signal(false);

function move(key) {
  if (!game.value.square || !spot.value.classes) return;
  const { columns, label } = game.value.grid;
  const cell = chosen.value === ALL ? 0 : cellBeside(chosen.value, columns, label.length, STEPS[key]);
  if (cell !== null && spot.value.classes.combos[cell]) chosen.value = cell;
}
function nextView() {
  const keys = views.value.map(([key]) => key);
  wishedView.value = keys[(keys.indexOf(view.value) + 1) % keys.length];
}
/* Each entry has keys, a description, and a function of the key; keysOf finds the actions of ACTIONS. */
const ACTIONS = [[["c"], "check or call"], [["1 … 9"], "bets and raises, the smallest first"]];
const LOOK = [
  [["Backspace", "u"], "one action back", back],
  [["Home"], "to the first decision", () => go("")],
  [Object.keys(STEPS), "select another class of hands", move],
  [["a"], "all hands", () => { chosen.value = ALL; }],
  [["v"], "strategy, difference, either player's range, equity, EV", nextView],
  [["b"], "choose the board; then you can type cards: Kc7d2s", () => (isPicking() ? closePicker() : openPicker())],
  [["r"], "a random board", randomBoard],
  [["Escape"], "close the board or these keys", closePicker],
];
const EVERYWHERE = [
  [["p"], "play; there, f folds and n deals the next hand", () => goTo("#play")],
  [["t"], "light or dark", turnTheme],
  [["?"], "these keys", () => { helping.value = true; }],
];
const functionOf = (table, key) => table.find(([keys]) => keys.includes(key))?.[2];

/* Handle a key in the view of a decision; return whether it was used. */
function lookKey(key) {
  if (!spot.value) return false;
  const place = keysOf(spot.value.actions).indexOf(key);
  if (isPicking() && (typeCard(key) || place >= 0)) return true;  // while the picker is open, keys take no action
  const does = place >= 0 ? () => take(spot.value.actions[place]) : functionOf(LOOK, key);
  does?.(key);
  return Boolean(does);
}
const isText = (target) => target.matches("textarea, input:not([type=checkbox])");
function onKeyDown(event) {
  const { key, target } = event, { tab } = route.value;
  if (event.ctrlKey || event.metaKey || event.altKey || helping.value || isText(target)) return;
  if (key.startsWith("Arrow") && target.matches("select, #hands")) return;
  const done = tab === "play" ? playKey(key) : tab !== "spot" && lookKey(key), does = functionOf(EVERYWHERE, key);
  if (!done && !does) return;
  event.preventDefault();
  if (!done) does();
}

export function Keys() {
  const dialog = useRef(null);
  useEffect(() => {
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  useEffect(() => { if (helping.value) dialog.current.showModal(); }, [helping.value]);
  return (
    <dialog id="keys" ref={dialog} aria-labelledby="keys-title" onClose={() => { helping.value = false; }}>
      <h2 id="keys-title">Keys</h2>
      <dl>{[...ACTIONS, ...LOOK, ...EVERYWHERE].map(([keys, text]) => [<dt key={keys[0]}>{keys.join(", ")}</dt>, <dd key={text}>{text}</dd>])}</dl>
      <form method="dialog"><button type="submit">Close</button></form>
    </dialog>
  );
}
