/* The table and chart of all possible next cards: strategy, equity and EV of the player to act after each. */
import { signal } from "@preact/signals";
import uPlot from "uplot";
import { Card, cardText } from "./cards.jsx";
import { axis, Chart, colourOf, Legend, percents, WIDE } from "./chart.jsx";
import { amount, percent, realised, unit } from "./figures.js";
import { Bar, colours, shortName } from "./grid.jsx";
import { ask, game, isMany, split, spot } from "./study.js";
import { figure, SortedTable, sortedRows } from "./table.jsx";

const STEP = 4;                               // number of cards between two updates of the display
export const nextCards = signal([]);          // one {card, spot, equity, ev} for each card

/* Request the decision after each possible next card, while still() is true.  EVs take longest and are requested last. */
export async function readNextCards({ line, board, player }, still) {
  const there = split(board || ""), mean = (found) => (found.mean ? found.mean[player] : null);
  const at = (card) => ({ line, board: there.join("") + card });
  let rows = [];
  nextCards.value = [];
  for (const card of game.value.deck.filter((name) => !there.includes(name)).reverse()) {
    const [found, equity] = await Promise.all([ask("/api/spot", at(card)), ask("/api/equity", at(card))]);
    if (!still()) return;
    rows = [...rows, { card, spot: found, equity: mean(equity), ev: null }];
    if (rows.length % STEP === 0) nextCards.value = rows;
  }
  for (const { card } of isMany.value ? [] : rows) {
    const ev = mean(await ask("/api/values", at(card)));
    if (!still()) return;
    rows = rows.map((row) => (row.card === card ? { ...row, ev } : row));
    nextCards.value = rows;
  }
}

function columns(pick) {
  const { actions, player, pot_chips: pot } = spot.value, colour = colours(actions);
  return [
    {
      head: "card",
      value: (row) => -game.value.deck.indexOf(row.card),
      cell: (row) => <button type="button" class="cards" onClick={() => pick(row.card)}><Card name={row.card} /></button>,
      class: "hand",
    },
    { head: "", cell: (row) => row.spot.frequencies && <Bar shares={row.spot.frequencies} colour={colour} /> },
    ...actions.map((action, place) =>
      figure(shortName(action), (row) => row.spot.frequencies && row.spot.frequencies[place], percent)),
    figure(game.value.square ? "combos" : "hands", (row) => row.spot.ranges[player].combos, (count) => count.toFixed(1)),
    figure("equity", (row) => row.equity, percent),
    ...(isMany.value ? [] : [figure("EV", (row) => row.ev, amount),
      figure("EQR", (row) => realised(row.equity, row.ev, pot), (share) => percent(share, 0))]),
  ];
}

const inUnit = (_, ticks) => ticks.map(amount);
/* A chart with a column for each card, filled by the frequencies of the actions; equity and EV are lines. */
function CardChart() {
  const rows = nextCards.value, { actions, role } = spot.value, colour = colours(actions);
  if (!rows.length) return null;
  /* Cumulative frequencies: the largest sums are drawn first, the others over them. */
  const upTo = (row, place) => row.spot.frequencies && row.spot.frequencies.slice(0, place + 1).reduce((sum, one) => sum + one);
  const order = actions.map((_, place) => place).reverse();
  const cumulative = order.map((place) => rows.map((row) => upTo(row, place)));
  const options = () => ({
    scales: { x: { time: false, range: [-0.6, rows.length - 0.4] }, y: { range: [0, 1] }, ev: {} },
    axes: [
      axis({ values: (_, ticks) => ticks.map((place) => rows[place] && cardText(rows[place].card)), incrs: [1, 2, 4, 8] }),
      axis({ values: percents, size: WIDE }),
      axis({ values: inUnit, scale: "ev", side: 1, grid: { show: false } }),
    ],
    series: [{},
      ...order.map((place) => ({ fill: colourOf(colour[place]), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.9, 60] }) })),
      { stroke: colourOf("ink"), width: 2 },
      { stroke: colourOf("difference"), width: 2, scale: "ev" }],
  });
  const known = rows.filter((row) => row.equity !== null), by = sortedRows(known, (row) => row.equity, true);
  const label = `Frequencies, equity and EV of ${role} by next card.` +
    (by.length ? ` Equity is highest on ${by[0].card} and lowest on ${by.at(-1).card}.` : "");
  return (
    <div id="card-figure">
      <Legend keys={[...actions.map((one, place) => [colour[place], one.name]), ["ink-fill", "equity"], ["difference-fill", `EV, ${unit.value.name}`]]} />
      <Chart id="card-chart" label={label} options={options}
        data={[rows.map((_, place) => place), ...cumulative, rows.map((row) => row.equity), rows.map((row) => row.ev)]} />
    </div>
  );
}
export function NextCards({ pick }) {
  const rows = nextCards.value;
  return (
    <section id="list" aria-label="Next cards">
      <div class="row">
        <h2 id="hands-title">{game.value.streets[spot.value.street].name} cards</h2>
        <span id="listed" class="quiet">{rows.length} cards, {spot.value.role} to act</span>
      </div>
      <CardChart />
      <div id="hands" tabIndex="0">
        <SortedTable columns={columns(pick)} rows={rows} first={{ by: "card", down: false }}
          row={({ card }) => ({ key: card, class: "card-row", "data-row": card })} />
      </div>
    </section>
  );
}
