/* The betting line with each street's board cards, and the picker of board cards. */
import { signal } from "@preact/signals";
import { Card, Deck } from "./cards.jsx";
import { chooseBoard, firstCards, game, go, neededCards, split, spot, streetCards } from "./study.js";

const picked = signal(null);  // cards chosen in the picker; null: it is closed
const typed = signal("");     // rank of a card that is typed, until its suit follows

export const isPicking = () => picked.value !== null;
export function openPicker() {
  if (neededCards() === firstCards().length) return;
  const there = split(spot.value.board || "");
  picked.value = there.length < firstCards().length ? firstCards() : there;
  typed.value = "";
}
export function closePicker() { picked.value = null; }
function pickAll(names) {
  if (names.length < neededCards()) { picked.value = names; return; }
  closePicker();
  chooseBoard(names);
}
export function pick(name) {
  const there = picked.value || split(spot.value.board || "");
  pickAll(there.includes(name) ? there.filter((card) => card !== name) : [...there, name]);
}
/* Handle a key while the picker is open: a card is typed as a rank, then a suit.  Return whether the key was used. */
export function typeCard(key) {
  if (key === "Backspace") {
    if (!typed.value && picked.value.length > firstCards().length) picked.value = picked.value.slice(0, -1);
    typed.value = "";
    return true;
  }
  if (key.length > 1) return false;
  const text = typed.value + (typed.value ? key.toLowerCase() : key.toUpperCase());
  const found = game.value.deck.filter((name) => name.startsWith(text));
  if (!found.length) return typed.value !== "";
  typed.value = found.includes(text) ? "" : text;
  if (found.includes(text) && !picked.value.includes(text) && picked.value.length < neededCards()) pick(text);
  return true;
}
export function randomBoard() {
  const needed = neededCards();
  if (needed === firstCards().length) return;
  const known = spot.value.missing_cards ? picked.value || split(spot.value.board || "") : firstCards();
  const names = [...known];
  while (names.length < needed) {
    const card = game.value.deck[Math.floor(Math.random() * game.value.deck.length)];
    if (!names.includes(card)) names.push(card);
  }
  pickAll(names);
}

export function BoardPicker() {
  if (picked.value === null) return null;
  const { street } = spot.value, left = neededCards() - picked.value.length;
  const toChoose = `${left} ${left === 1 ? "card" : "cards"} to choose or type${typed.value && `: ${typed.value}`}`;
  return (
    <section id="picker" aria-label="Board">
      <div class="row">
        <strong id="picker-title">
          {game.value.streets[street].name} board: {left ? toChoose : "complete; click a chosen card to remove it"}
        </strong>
        <span class="space" />
        <button id="picker-random" type="button" onClick={randomBoard}>Random</button>
        <button type="button" onClick={() => { picked.value = firstCards(); }}>Clear</button>
        <button type="button" onClick={closePicker}>Close</button>
      </div>
      <Deck id="picker-cards" deck={game.value.deck} chosen={picked.value} onPick={pick}
        fixed={(name) => firstCards().includes(name) || (!left && !picked.value.includes(name))} />
    </section>
  );
}

/* A button with the cards that a street adds to the board, or with the number of cards to choose. */
function StreetCards({ before, count }) {
  const there = split(spot.value.board || "").slice(before, count), left = count - before;
  const lacking = spot.value.missing_cards && there.length < left;
  return (
    <button type="button" class={lacking ? "cards lacking" : "cards"} title="Choose the board (b)" onClick={openPicker}>
      {lacking ? `choose ${left}` : there.map((name) => <Card key={name} name={name} />)}
    </button>
  );
}
function Step({ step }) {
  return (
    <button type="button" class={`step ${step.kind}`} title="Back to here" onClick={() => go(step.line)}>
      <small>{game.value.roles[step.player]} </small>{step.name}
    </button>
  );
}
export function Path() {
  const { street: last, path, role } = spot.value;
  return (
    <nav id="path" aria-label="Line of betting">
      {game.value.streets.slice(0, last + 1).map(({ name }, street) => {
        const count = streetCards(street), before = street ? streetCards(street - 1) : 0;
        return (
          <div key={name} class="street">
            <b>{name}</b>
            {count > before && <StreetCards before={before} count={count} />}
            {path.filter((one) => one.street === street).map((step) => <Step key={step.line} step={step} />)}
            {street === last && <span class="step" aria-current="step">{role} to act</span>}
          </div>
        );
      })}
    </nav>
  );
}
