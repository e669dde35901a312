/* The grid of a decision's classes of hands: what each does, its range, equity or EV. */
import { ALL, chosen, compared, equities, game, isMany, listedPlayer, spot, values, view, views, wishedView } from "./study.js";
import { difference, pairNames, sharedColours } from "./compare.js";
import { Toggles } from "./controls.jsx";
import { amount, mean, percent, shortAmount, unit } from "./figures.js";
import { HandGrid } from "./grid.jsx";

export const choose = (cell) => { chosen.value = chosen.value === cell ? ALL : cell; };

/* What the cells of a view have figures of, and how they are told; null where they have none. */
function figures() {
  if (view.value === "ev") {
    return { of: values.value.hands[spot.value.player], told: (ev) => `EV ${amount(ev)}`, brief: shortAmount };
  }
  if (view.value === "equity") {
    return {
      of: equities.value.equity[spot.value.player],
      told: (share) => `equity ${percent(share)}`,
      brief: (share) => (100 * share).toFixed(0),
    };
  }
  return null;
}
/* Mean over the hands of each class, by their shares; null where nobody holds one. */
function meansOfClasses(found) {
  const { cells, shares } = spot.value.hands, places = game.value.grid.label.map(() => []);
  cells.forEach((cell, hand) => { places[cell].push(hand); });
  return places.map((hands) => mean(hands, shares[spot.value.player], (hand) => found[hand]));
}

/* Signs of classes that mix actions, by their EVs. */
const SIGNS = { equal: ["=", "mixes actions of equal EV"], different: ["≠", "mixes actions of different EV"] };

/* The cells of the grid for a strategy at the decision: its own, or the one beside it. */
function cellsOf(from) {
  const { classes } = spot.value, player = listedPlayer.value, colour = sharedColours(from.actions);
  const most = Math.max(...classes.reach[player], 1e-300);
  const figured = figures(), means = figured ? meansOfClasses(figured.of) : [];
  const known = means.filter((one) => one !== null), low = Math.min(...known), high = Math.max(...known);
  return game.value.grid.label.map((_, cell) => {
    if (!classes.combos[cell]) return null;
    const reach = classes.reach[player][cell], shares = from.classes.probabilities[cell];
    const told = `weight ${percent(reach)}, share ${percent(classes.shares[player][cell], 2)}`;
    if (view.value === "difference") {
      const apart = difference(classes.probabilities[cell], compared.value.classes.probabilities[cell]);
      return { shares: [reach / most], colour: ["difference-fill"], height: apart, title: `${percent(apart)} apart; ${told}` };
    }
    if (figured) {
      const mean = means[cell];
      if (mean === null) return { shares: [1], colour: ["range-fill"], height: 0, title: told };
      return { shares: [1], colour: ["range-fill"], height: (mean - low) / (high - low || 1), figure: figured.brief(mean),
        title: `${figured.told(mean)}; ${told}` };
    }
    if (view.value !== "strategy") return { shares: [1], colour: ["range-fill"], height: reach / most, empty: !reach, title: told };
    const text = from.actions.map((one, action) => `${one.name} ${percent(shares[action])}`).join(", ");
    const [figure, meaning] = (from === spot.value && player === from.player && SIGNS[values.value?.mixed?.[cell]]) || [];
    return { shares, colour, height: reach / most, empty: !reach, figure, title: [text, meaning, told].filter(Boolean).join("; ") };
  });
}

const LEGENDS = {
  equity: () => "Equity in percent, between the lowest and the highest of a class.",
  ev: () => `EV in ${unit.value.name}, between the lowest and the highest of a class.`,
  difference: () => "A cell is filled as high as the two do something else with it (half the sum of differences of " +
    "probabilities), and as wide as its hands come here, of those that come here most.",
  strategy: () => "Height: the part of a class that is left; widths: what it does." +
    (isMany.value ? "" : " =, ≠: mixes actions of equal, different EV."),
};
const rangeLegend = () => "Height: how much of a class is left, beside the class with the most.";

function Panel({ id, heading, from }) {
  const { columns, label } = game.value.grid;
  return (
    <div class="panel">
      {heading && <h2 id={`name-${id}`}>{heading}</h2>}
      <HandGrid id={id} name={heading || "Classes of hands"} columns={columns} labels={label} cells={cellsOf(from)}
        chosen={chosen.value} onChoose={choose} onMove={(cell) => { chosen.value = cell; }} />
    </div>
  );
}

export const Views = () => (
  <Toggles id="views" name="What the grid shows" value={view.value} choices={views.value} onChoose={(key) => { wishedView.value = key; }} />
);
export function Grids() {
  const two = compared.value !== null && view.value === "strategy";
  return (
    <>
      <div id="grids" class={two ? "two" : ""}>
        <Panel id="grid" heading={two && pairNames()[0]} from={spot.value} />
        {two && <Panel id="grid-beside" heading={pairNames()[1]} from={compared.value} />}
      </div>
      <p id="legend" class="quiet">{(LEGENDS[view.value] || rangeLegend)()}</p>
    </>
  );
}
