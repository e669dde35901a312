/* The grid of a decision: strategy, weight, equity or EV of each class of hands. */
import { ALL, chosen, compared, equities, game, isMany, listedPlayer, spot, values, view, views, wishedView } from "./study.js";
import { difference, pairNames, sharedColours } from "./compare.js";
import { Toggles } from "./controls.jsx";
import { amount, mean, percent, shortAmount, unit } from "./figures.js";
import { HandGrid } from "./grid.jsx";

export const choose = (cell) => { chosen.value = chosen.value === cell ? ALL : cell; };

/* Return the figures of a view's cells, or null if it has none.  of: by hand; full(figure), brief(figure): as text */
function figures() {
  if (view.value === "ev") {
    return { of: values.value.hands[spot.value.player], full: (ev) => `EV ${amount(ev)}`, brief: shortAmount };
  }
  if (view.value === "equity") {
    return {
      of: equities.value.equity[spot.value.player],
      full: (share) => `equity ${percent(share)}`,
      brief: (share) => (100 * share).toFixed(0),
    };
  }
  return null;
}
/* Return the mean over the hands of each class, weighted by their shares; null for a class without weight. */
function meansOfClasses(found) {
  const { cells, shares } = spot.value.hands, places = game.value.grid.label.map(() => []);
  cells.forEach((cell, hand) => { places[cell].push(hand); });
  return places.map((hands) => mean(hands, shares[spot.value.player], (hand) => found[hand]));
}

/* Sign and meaning for classes that mix actions: of equal or of different EV. */
const SIGNS = { equal: ["=", "mixes actions of equal EV"], different: ["≠", "mixes actions of different EV"] };

/* Return the cells of the grid.  from: the decision of the shown strategy, or of the compared one */
function cellsOf(from) {
  const { classes } = spot.value, player = listedPlayer.value, colour = sharedColours(from.actions);
  const most = Math.max(...classes.reach[player], 1e-300);
  const shown = figures(), means = shown ? meansOfClasses(shown.of) : [];
  const known = means.filter((one) => one !== null), low = Math.min(...known), high = Math.max(...known);
  return game.value.grid.label.map((_, cell) => {
    if (!classes.combos[cell]) return null;
    const reach = classes.reach[player][cell], shares = from.classes.probabilities[cell];
    const weights = `weight ${percent(reach)}, share ${percent(classes.shares[player][cell], 2)}`;
    if (view.value === "difference") {
      const apart = difference(classes.probabilities[cell], compared.value.classes.probabilities[cell]);
      return { shares: [reach / most], colour: ["difference-fill"], height: apart, title: `${percent(apart)} apart; ${weights}` };
    }
    if (shown) {
      const mean = means[cell];
      if (mean === null) return { shares: [1], colour: ["range-fill"], height: 0, title: weights };
      return { shares: [1], colour: ["range-fill"], height: (mean - low) / (high - low || 1), figure: shown.brief(mean),
        title: `${shown.full(mean)}; ${weights}` };
    }
    if (view.value !== "strategy") return { shares: [1], colour: ["range-fill"], height: reach / most, empty: !reach, title: weights };
    const text = from.actions.map((one, action) => `${one.name} ${percent(shares[action])}`).join(", ");
    const [figure, meaning] = (from === spot.value && player === from.player && SIGNS[values.value?.mixed?.[cell]]) || [];
    return { shares, colour, height: reach / most, empty: !reach, figure, title: [text, meaning, weights].filter(Boolean).join("; ") };
  });
}

const LEGENDS = {
  equity: () => "Equity in percent. Height: from the class with the lowest to the class with the highest.",
  ev: () => `EV in ${unit.value.name}. Height: from the class with the lowest to the class with the highest.`,
  difference: () => "Height: how differently the two strategies play the class (half the sum of the differences of its " +
    "probabilities). Width: its weight, relative to the class with the largest weight.",
  strategy: () => "Height: weight of the class, relative to the largest. Widths: frequencies of its actions." +
    (isMany.value ? "" : " =: mixes actions of equal EV; ≠: of different EV."),
};
const rangeLegend = () => "Height: weight of the class, relative to the class with the largest weight.";

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
