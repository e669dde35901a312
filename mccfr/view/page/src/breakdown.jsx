/* Lists of a decision's range other than its hands: classes of hands, blockers, and a graph of equities. */
import { axis, Chart, colourOf, Legend, percents, WIDE } from "./chart.jsx";
import { Card } from "./cards.jsx";
import { amount, mean, percent } from "./figures.js";
import { Bar, colours, shortName } from "./grid.jsx";
import { equities, game, isMany, listedPlayer, neededCards, pair, spot, split, values } from "./study.js";
import { figure, SortedTable } from "./table.jsx";

const QUANTILES = Array.from({ length: 101 }, (_, place) => place / 100);
const LINES = ["call-fill", "raise-3"];  // colours of the two players

/* Return the mean frequency of each action over hands, weighted.  places: indices of hands; weight: by index */
const frequencies = (places, weight) =>
  spot.value.actions.map((_, action) => mean(places, weight, (place) => spot.value.hands.probabilities[place][action]));

/* --- by class of hand --- */

/* Return the indices of hands by the name of their made hand and of each draw. */
function groups() {
  const { made, draws } = spot.value.hands, found = new Map();
  const add = (name, place) => found.set(name, [...(found.get(name) || []), place]);
  made.forEach((name, place) => {
    add(name, place);
    for (const draw of draws[place] ? draws[place].split(", ") : []) add(draw, place);
  });
  return found;
}
/* The table of kinds of made hands and draws: actions, share of the range, combos, equity and EV of each. */
export function Classes() {
  const player = listedPlayer.value, { hands, player: actor, actions } = spot.value, shares = hands.shares[player];
  const acts = player === actor, colour = colours(actions), sum = (places, weight) => places.reduce((all, place) => all + weight[place], 0);
  const meanOf = (places, of) => of && mean(places, shares, (place) => of[player][place]);
  const rows = [...groups()].map(([name, places]) => ({
    name,
    share: sum(places, shares),
    combos: sum(places, hands.reach[player]),
    frequencies: frequencies(places, shares),
    equity: meanOf(places, equities.value?.equity) ?? null,
    ev: meanOf(places, values.value?.hands) ?? null,
  })).filter((row) => row.share > 0).sort((one, other) => other.share - one.share);
  const columns = [
    { head: "class", cell: (row) => row.name },
    ...(acts ? [{ head: "", cell: (row) => <Bar shares={row.frequencies} colour={colour} /> },
      ...actions.map((one, place) => figure(shortName(one), (row) => row.frequencies[place], percent))] : []),
    figure("share", (row) => row.share, percent),
    figure("combos", (row) => row.combos, (count) => count.toFixed(1)),
    ...(pair.value ? [figure("equity", (row) => row.equity, percent)] : []),
    ...(isMany.value ? [] : [figure("EV", (row) => row.ev, amount)]),
  ];
  return <SortedTable columns={columns} rows={rows} row={({ name }) => ({ key: name, "data-row": name })} />;
}

/* --- blockers --- */

/* The table of blockers.  For each card: the change of each action's frequency, in percentage points, if the opponent
   holds the card, and the share of the range that contains it. */
export function Blockers() {
  const { hands, player, actions, role, board } = spot.value, weight = hands.reach[player];
  const places = hands.names.map((_, place) => place), cardsOf = hands.names.map((name) => split(name));
  const all = frequencies(places, weight), there = split(board || ""), total = weight.reduce((sum, one) => sum + one, 0);
  const cards = game.value.deck.filter((card) => !there.includes(card) && (neededCards() || card.endsWith("s")));
  const rows = cards.map((card) => {
    const possible = places.filter((place) => !cardsOf[place].includes(card)), mix = frequencies(possible, weight);
    const changes = mix.map((share, action) => (share === null || all[action] === null ? null : share - all[action]));
    return { card, changes, gone: 1 - possible.reduce((sum, place) => sum + weight[place], 0) / total };
  }).sort((one, other) => Math.max(...other.changes.map(Math.abs)) - Math.max(...one.changes.map(Math.abs)));
  const signed = (change) => (change === null ? "–" : `${change > 0 ? "+" : ""}${(100 * change).toFixed(2)}`);
  const columns = [
    { head: "card", cell: (row) => <Card name={row.card} />, class: "hand" },
    ...actions.map((one, place) => figure(shortName(one), (row) => row.changes[place], signed)),
    figure("blocked", (row) => row.gone, percent),
  ];
  return (
    <>
      <p class="quiet">
        If another player holds the card: the change of {role}'s frequencies in percentage points, and the share of the range that
        the card blocks.{neededCards() ? "" : " Before the flop, all suits give the same figures."}
      </p>
      <SortedTable columns={columns} rows={rows} row={({ card }) => ({ key: card, "data-row": card })} />
    </>
  );
}

/* --- the graph of equities --- */

/* Return the quantiles of a player's equity: for each of QUANTILES, the equity that this share of the range does not
   exceed; null for an empty range. */
function quantiles(player) {
  const shares = spot.value.hands.shares[player], equity = equities.value.equity[player];
  const order = shares.map((_, place) => place).filter((place) => shares[place] > 0 && equity[place] !== null)
    .sort((one, other) => equity[one] - equity[other]);
  const total = order.reduce((sum, place) => sum + shares[place], 0);
  let at = 0, below = order.length ? shares[order[0]] / total : 0;
  return QUANTILES.map((share) => {
    while (at < order.length - 1 && below < share) below += shares[order[++at]] / total;
    return order.length ? equity[order[at]] : null;
  });
}

export function EquityGraph() {
  if (!equities.value?.equity) return <p class="quiet">Equities are not known here.</p>;
  const roles = pair.value.map((player) => game.value.roles[player]), lines = pair.value.map(quantiles);
  const medians = lines.map((one) => percent(one[50]));
  const options = () => ({
    scales: { x: { time: false }, y: { range: [0, 1] } },
    axes: [axis({ values: percents, label: "share of the range, weakest hands first" }), axis({ values: percents, size: WIDE })],
    series: [{}, ...LINES.map((name) => ({ stroke: colourOf(name), width: 2 }))],
  });
  const label = `Equities of both ranges. ${roles.map((role, player) => `${role}: half the range has ${medians[player]} or less`).join(". ")}.`;
  return (
    <>
      <Legend keys={roles.map((role, player) => [LINES[player], role])} />
      <Chart id="equity-graph" label={label} options={options} data={[QUANTILES, ...lines]} />
    </>
  );
}
