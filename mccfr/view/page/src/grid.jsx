/* The grid of classes of hands, and the colours of actions. */
import { useRef } from "preact/hooks";

const REDS = 6;
/* The direction of each arrow key: [rows down, columns to the right]. */
export const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/* Return the kind of an action: `fold`, `call` (also a check) or `raise` (also a bet). */
const kindOf = (action) => ({ f: "fold", c: "call" })[action] || "raise";

/* Return the CSS class that colours each action.  Larger bets and raises are darker. */
export function colours(actions) {
  const kinds = actions.map((one) => one.kind || kindOf(one.action));
  const raises = kinds.filter((kind) => kind === "raise").length;
  let place = 0;
  return kinds.map((kind) => {
    if (kind !== "raise") return `${kind}-fill`;
    const red = raises < 2 ? 3 : 1 + Math.round((place++ * (REDS - 1)) / (raises - 1));
    return `raise-${raises === 2 && red === REDS ? 5 : Math.max(red, raises < 4 ? 2 : 1)}`;
  });
}

/* Return an action's name for the head of a column. */
export function shortName({ kind, name }) {
  if (kind !== "raise") return name.split(" ")[0];
  return name.replace(/^All-in .*|^(Raise|Bet) (to |by )?/, (found) => (found.startsWith("All-in") ? "All-in" : ""));
}

const parts = (shares, colour) =>
  shares.map((share, place) => <i key={`${place} ${colour[place]}`} class={colour[place]} style={{ width: `${100 * share}%` }} />);
export const Bar = ({ shares, colour, title }) => <span class="bar" title={title}>{parts(shares, colour)}</span>;

/* Return the next cell in a direction, [rows down, columns to the right], or null at the edge. */
export function cellBeside(cell, columns, count, [down, across]) {
  const row = Math.floor(cell / columns) + down, column = (cell % columns) + across;
  return row < 0 || row >= count / columns || column < 0 || column >= columns ? null : row * columns + column;
}

/* A grid of buttons, one for each class of hands.  The Tab key reaches one of them, arrow keys the others.
   cells: null for a class without hands, else {shares, colour, height 0..1, title, figure, empty}; figure is optional text,
          and empty is true if the player holds no hand of the class
   onMove(cell): after an arrow key; onChoose(cell, event): after a click */
export function HandGrid({ id, name, columns, labels, cells, chosen = -1, onChoose, onMove, ...more }) {
  const box = useRef(null);
  const first = cells[chosen] ? chosen : cells.findIndex(Boolean);
  function step(event) {
    const at = [...box.current.children].indexOf(document.activeElement);
    if (!STEPS[event.key] || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const to = cellBeside(at, columns, labels.length, STEPS[event.key]);
    if (to === null || !cells[to]) return;
    box.current.children[to].focus();
    onMove?.(to);
  }
  return (
    <div id={id} ref={box} class="grid" role="group" aria-label={name} onKeyDown={step} {...more}
      style={{ gridTemplateColumns: `repeat(${columns}, 1fr)` }}>
      {labels.map((label, cell) => {
        const one = cells[cell];
        return (
          <button key={label} type="button" class={one && !one.empty ? "cell" : "cell none"} data-class={label} disabled={!one}
            tabIndex={cell === first ? 0 : -1} title={one ? `${label}: ${one.title}` : ""}
            aria-current={cell === chosen ? "true" : undefined} onClick={(event) => onChoose?.(cell, event)}>
            {one && <span class="fill" style={{ height: `${100 * one.height}%` }}>{parts(one.shares, one.colour)}</span>}
            <span class="name">{label}</span>
            {one?.figure && <span class="figure">{one.figure}</span>}
          </button>
        );
      })}
    </div>
  );
}
