/* Cards and hands as text or elements, and a deck for choosing cards. */
export const SUITS = { c: "♣", d: "♦", h: "♥", s: "♠" };
export const RANKS = [..."AKQJT98765432"];
/* The 169 classes of hold'em hands, row by row from AA: suited above the diagonal of pairs, offsuit below. */
export const CLASSES = RANKS.flatMap((row, down) =>
  RANKS.map((column, across) => (down === across ? row + row : down < across ? `${row}${column}s` : `${column}${row}o`)));
export const FULL_DECK = [..."cdhs"].flatMap((suit) => [...RANKS].reverse().map((rank) => rank + suit));

/* Split a text such as Kc7d2s into cards of `width` characters. */
export const cardsOf = (text, width = 2) => text.match(new RegExp(`.{1,${width}}`, "g")) || [];

export const cardText = (name) => (name.length === 2 && SUITS[name[1]] ? name[0] + SUITS[name[1]] : name);
const suitOf = (name) => (name.length === 2 && SUITS[name[1]] ? name[1] : "");

export const Card = ({ name }) => <span class={`card ${suitOf(name)}`}>{cardText(name)}</span>;
export const HiddenCard = () => <span class="card back" role="img" aria-label="face down">&nbsp;</span>;

/* A hand's cards, coloured by suit; another name, such as AKs, unchanged. */
export function HandText({ name }) {
  if (!/^(?:[2-9TJQKA][cdhs])+$/.test(name)) return name;
  return cardsOf(name).map((card) => <span key={card} class={`suit ${card[1]}`}>{cardText(card)}</span>);
}

/* Buttons for the cards of a deck, a row for each suit.
   chosen: names of the pressed buttons; fixed(name): true for a disabled button; onPick(name): after a click */
export function Deck({ id, deck, chosen, fixed, onPick }) {
  const suits = [...new Set(deck.map((name) => name.slice(1)))].sort().reverse();
  const ranks = [...new Set(deck.map((name) => name[0]))].reverse();
  return (
    <div id={id} class="deck" style={{ gridTemplateColumns: `repeat(${ranks.length}, minmax(0, 40px))` }}>
      {suits.flatMap((suit) => ranks.map((rank) => {
        const name = rank + suit;
        if (!deck.includes(name)) return <span key={name} />;
        return (
          <button key={name} type="button" class={`card ${suit}`} data-card={name} aria-label={name}
            aria-pressed={chosen.includes(name)} disabled={fixed(name)} onClick={() => onPick(name)}>
            {cardText(name)}
          </button>
        );
      }))}
    </div>
  );
}
