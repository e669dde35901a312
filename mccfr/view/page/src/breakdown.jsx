/* A decision's range in other lists: by class of hand, by a card that the opponent holds, and its equities as a graph. */
import { axis, Chart, colourOf, Legend, percents, WIDE } from "./chart.jsx";
import { Card } from "./cards.jsx";
import { amount, mean, percent } from "./figures.js";
import { Bar, colours, shortName } from "./grid.jsx";
import { equities, game, isMany, listedPlayer, neededCards, pair, spot, split, values } from "./study.js";
import { figure, SortedTable } from "./table.jsx";

const QUANTILES = Array.from({ length: 101 }, (_, place) => place / 100);
const LINES = ["call-fill", "raise-3"];  // colours of the two players

/* Frequencies of the actions over places of hands. */
const frequencies = (places, weight) =>
  spot.value.actions.map((_, action) => mean(places, weight, (place) => spot.value.hands.probabilities[place][action]));

/* --- by class of hand --- */

function groups() {
  const { made, draws } = spot.value.hands, found = new Map();
  const add = (name, place) => found.set(name, [...(found.get(name) || []), place]);
  made.forEach((name, place) => {
    add(name, place);
    for (const draw of draws[place] ? draws[place].split(", ") : []) add(draw, place);
  });
  return found;
}
/* What each made hand and each draw does: how often, with what equity and EV. */
export function Classes() {
  const player = listedPlayer.value, { hands, player: actor, actions } = spot.value, shares = hands.shares[player];
  const acts = player === actor, colour = colours(actions), sum = (places, weight) => places.reduce((all, place) => all + weight[place], 0);
  const found = (places, of) => of && mean(places, shares, (place) => of[player][place]);
  const rows = [...groups()].map(([name, places]) => ({
    name,
    share: sum(places, shares),
    combos: sum(places, hands.reach[player]),
    frequencies: frequencies(places, shares),
    equity: found(places, equities.value?.equity) ?? null,
    ev: found(places, values.value?.hands) ?? null,
  })).filter((row) => row.share > 0).sort((one, other) => other.share - one.share);
  const columns = [
    { head: "class", cell: (row) => row.name },
    ...(acts ? [{ head: "", cell: (row) => <Bar shares={row.frequencies} colour={colour} /> },
      ...actions.map((one, place) => figure(shortName(one), (row) => row.frequencies[place], percent))] : []),
    figure("share", (row) => row.share, percent),
    figure("combos", (row) => row.combos, (held) => held.toFixed(1)),
    ...(pair.value ? [figure("equity", (row) => row.equity, percent)] : []),
    ...(isMany.value ? [] : [figure("EV", (row) => row.ev, amount)]),
  ];
  return <SortedTable columns={columns} rows={rows} row={({ name }) => ({ key: name, "data-row": name })} />;
}

/* --- blockers --- */

/* How often the player acts in each way if the opponent holds a card, beside the range as a whole. */
export function Blockers() {
  const { hands, player, actions, role, board } = spot.value, weight = hands.reach[player];
  const places = hands.names.map((_, place) => place), held = hands.names.map((name) => split(name));
  const all = frequencies(places, weight), there = split(board || ""), total = weight.reduce((sum, one) => sum + one, 0);
  const cards = game.value.deck.filter((card) => !there.includes(card) && (neededCards() || card.endsWith("s")));
  const rows = cards.map((card) => {
    const left = places.filter((place) => !held[place].includes(card)), mix = frequencies(left, weight);
    const changes = mix.map((share, action) => (share === null || all[action] === null ? null : share - all[action]));
    return { card, changes, gone: 1 - left.reduce((sum, place) => sum + weight[place], 0) / total };
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
        If another player holds the card: by how many percentage points {role} acts more often so, and how much of the range is
        blocked.{neededCards() ? "" : " Before the flop suits are alike."}
      </p>
      <SortedTable columns={columns} rows={rows} row={({ card }) => ({ key: card, "data-row": card })} />
    </>
  );
}

/* --- the graph of equities --- */

/* The equity below which each share of a range lies. */
function quantiles(player) {
  const shares = spot.value.hands.shares[player], found = equities.value.equity[player];
  const order = shares.map((_, place) => place).filter((place) => shares[place] > 0 && found[place] !== null)
    .sort((one, other) => found[one] - found[other]);
  const total = order.reduce((sum, place) => sum + shares[place], 0);
  let at = 0, below = order.length ? shares[order[0]] / total : 0;
  return QUANTILES.map((share) => {
    while (at < order.length - 1 && below < share) below += shares[order[++at]] / total;
    return order.length ? found[order[at]] : null;
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
