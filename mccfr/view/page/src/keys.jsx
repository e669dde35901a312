/* The keys of the page, wherever the focus is; text fields keep theirs. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { goTo, route } from "./address.js";
import { keysOf } from "./actions.jsx";
import { closePicker, isPicking, openPicker, randomBoard, typeCard } from "./board.jsx";
import { cellBeside } from "./grid.jsx";
import { playKey } from "./play.jsx";
import { ALL, back, chosen, game, go, spot, take, view, views, wishedView } from "./study.js";
import { turnTheme } from "./theme.js";

const HELP = [
  ["c", "check or call"],
  ["1 … 9", "bets and raises, the smallest first"],
  ["Backspace, u", "one action back"],
  ["Home", "to the first decision"],
  ["← ↑ → ↓", "another class of hands"],
  ["a", "all hands"],
  ["v", "strategy, difference, either player's range, equity, EV"],
  ["b", "choose the board; cards may be typed then: Kc7d2s"],
  ["r", "a random board"],
  ["p", "play; there f folds, n deals the next hand"],
  ["t", "light or dark"],
  ["?", "these keys; Esc closes"],
];
export const helping = signal(false);

function move(down, across) {
  if (!game.value.square || !spot.value.classes) return;
  const { columns, label } = game.value.grid;
  const cell = chosen.value === ALL ? 0 : cellBeside(chosen.value, columns, label.length, [down, across]);
  if (cell !== null && spot.value.classes.combos[cell]) chosen.value = cell;
}
function nextView() {
  const keys = views.value.map(([key]) => key);
  wishedView.value = keys[(keys.indexOf(view.value) + 1) % keys.length];
}
const EVERYWHERE = { t: turnTheme, p: () => goTo("#play"), "?": () => { helping.value = true; } };
const LOOK = {
  Backspace: back,
  u: back,
  Home: () => go(""),
  ArrowUp: () => move(-1, 0),
  ArrowDown: () => move(1, 0),
  ArrowLeft: () => move(0, -1),
  ArrowRight: () => move(0, 1),
  a: () => { chosen.value = ALL; },
  v: nextView,
  b: () => (isPicking() ? closePicker() : openPicker()),
  r: randomBoard,
  Escape: closePicker,
};

/* Do what a key of a decision does; whether it has one. */
function lookKey(key) {
  if (!spot.value) return false;
  const place = keysOf(spot.value.actions).indexOf(key);
  if (isPicking() && (typeCard(key) || place >= 0)) return true;  // no action while cards are due
  if (place >= 0) take(spot.value.actions[place]);
  else if (Object.hasOwn(LOOK, key)) LOOK[key]();
  else return false;
  return true;
}
const isText = (target) => target.matches("textarea, input:not([type=checkbox])");
function pressed(event) {
  const { key, target } = event, { tab } = route.value;
  if (event.ctrlKey || event.metaKey || event.altKey || helping.value || isText(target)) return;
  if (key.startsWith("Arrow") && target.matches("select, #hands")) return;
  const done = tab === "play" ? playKey(key) : tab !== "spot" && lookKey(key);
  if (!done && !Object.hasOwn(EVERYWHERE, key)) return;
  event.preventDefault();
  if (!done) EVERYWHERE[key]();
}

export function Keys() {
  const dialog = useRef(null);
  useEffect(() => {
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => { if (helping.value) dialog.current.showModal(); }, [helping.value]);
  return (
    <dialog id="keys" ref={dialog} aria-labelledby="keys-title" onClose={() => { helping.value = false; }}>
      <h2 id="keys-title">Keys</h2>
      <dl>{HELP.map(([key, does]) => [<dt key={key}>{key}</dt>, <dd key={does}>{does}</dd>])}</dl>
      <form method="dialog"><button type="submit">Close</button></form>
    </dialog>
  );
}
