/* The list of a decision's hands: frequencies of actions, share of the range, equity and EV of each. */
import { signal } from "@preact/signals";
import { HandText } from "./cards.jsx";
import { Choice, Toggles } from "./controls.jsx";
import { difference, pairNames, sharedColours } from "./compare.js";
import { amount, combos, percent, realised, within } from "./figures.js";
import { Blockers, Classes, EquityGraph } from "./breakdown.jsx";
import { Bar, shortName } from "./grid.jsx";
import { ALL, chosen, compared, equities, game, isMany, listedPlayer, neededCards, pair as two, spot, values, view } from "./study.js";
import { reviewedHand } from "./review.jsx";
import { figure, SortableTable, sortedRows } from "./table.jsx";

const MIXED = 0.95;         // a hand mixes if all its actions have lower frequencies
const NO_DRAW = "no draw";
/* The server's names of made hands and draws, the best first. */
const KINDS = {
  made: ["straight flush", "four of a kind", "full house", "flush", "straight", "set", "trips", "two pair", "overpair",
    "top pair", "second pair", "low pair", "underpair", "high card"],
  draws: ["flush draw", "open-ended", "gutshot", NO_DRAW],
};
const sorting = signal({ by: null, down: true });  // by null: hands that mix first, then by share
const list = signal("Hands");                      // which of LISTS is shown
const wanted = signal({ made: "", draws: "" });    // filters: made hand and draw of the listed hands; "": all

const drawsOf = (text) => (text ? text.split(", ") : [NO_DRAW]);
const kindsThere = (name) => {
  const { hands } = spot.value;
  return new Set(name === "made" ? hands.made : hands.draws.flatMap(drawsOf));
};
/* Return the filters, with "" for one that no hand of the decision passes. */
function filters() {
  if (!spot.value.hands.made) return {};
  return Object.fromEntries(Object.entries(wanted.value).map(([name, kind]) =>
    [name, kindsThere(name).has(kind) ? kind : ""]));
}
function passes(place, only) {
  const { made, draws } = spot.value.hands;
  return (!only.made || made[place] === only.made) && (!only.draws || drawsOf(draws[place]).includes(only.draws));
}

/* True if a row of the list is a class of hands, as before the flop, and not one hand. */
const byClass = () => game.value.square && chosen.value === ALL && !neededCards();
/* Return the indices of the listed hands; of a class, only the first hand. */
function listedHands() {
  const { hands } = spot.value, seen = new Set(), only = filters();
  return hands.names.map((_, place) => place).filter((place) => {
    const cell = hands.cells[place], first = !byClass() || !seen.has(cell);
    seen.add(cell);
    return first && (chosen.value === ALL || !game.value.square || cell === chosen.value) && passes(place, only);
  });
}

/* Return the mean of values over the hands of a row, without nulls; null if all are null.  action: of values by action */
function meanOfRow(place, found, action) {
  const at = (hand) => (action === undefined ? found[hand] : found[hand][action]);
  if (!byClass()) return at(place);
  const { cells } = spot.value.hands;
  const known = found.map((_, hand) => at(hand)).filter((one, hand) => cells[hand] === cells[place] && one !== null);
  return known.length ? known.reduce((sum, one) => sum + one) / known.length : null;
}
/* Return the EV in chips of an action with the hands of a row; null if it is unknown. */
function evOf(from, place, action) {
  const found = from === spot.value ? values.value?.actions : from.values;
  return found ? meanOfRow(place, found, action) : null;
}
function actionLabel(from, place, action) {
  const ev = evOf(from, place, action), half = from === spot.value && ev !== null
    ? within(meanOfRow(place, values.value.actions_within, action)) : "";
  return `${from.actions[action].name} ${percent(from.hands.probabilities[place][action])}${ev === null ? "" : `, EV ${amount(ev)}${half}`}`;
}
/* Return the EV in chips of a hand in the solution; null if that of an action is unknown. */
const solvedEv = (pair, place) => pair.values[place].reduce((sum, value, action) =>
  sum === null || value === null ? null : sum + value * pair.hands.probabilities[place][action], 0);
/* True if a hand of the range mixes actions. */
const mixes = (place) => spot.value.hands.shares[spot.value.player][place] > 0 &&
  Math.max(...spot.value.hands.probabilities[place]) < MIXED;

function Mix({ from, place }) {
  const untrained = from === spot.value && !spot.value.hands.trained[place];
  const title = (untrained ? "Training never reached this hand here: all actions have the same probability. " : "") +
    from.actions.map((_, action) => actionLabel(from, place, action)).join("; ");
  return <span title={title}><Bar shares={from.hands.probabilities[place]} colour={sharedColours(from.actions)} /></span>;
}
function Frequency({ from, place, action }) {
  const ev = evOf(from, place, action);
  return (
    <span title={actionLabel(from, place, action)}>
      {percent(from.hands.probabilities[place][action])}{ev !== null && <small>{amount(ev)}</small>}
    </span>
  );
}
function columns(player, pair) {
  const { hands, classes } = spot.value, acts = player === spot.value.player;
  const per = (name) => (place) => byClass() ? classes[name][player][hands.cells[place]] : hands[name][player][place];
  const equity = figure("equity", (place) => (equities.value?.equity ? equities.value.equity[player][place] : null), percent);
  const ev = figure("EV", (place) => (values.value?.hands ? meanOfRow(place, values.value.hands[player]) : null), amount);
  const halfWidth = (place) => within(values.value?.hands ? meanOfRow(place, values.value.hands_within[player]) : 0);
  ev.cell = (place) => <>{amount(ev.value(place))}{halfWidth(place) && <small>{halfWidth(place)}</small>}</>;
  const detailed = !pair ? spot.value : pair.values ? pair : null;  // has a column for each action
  const found = [{
    head: "hand",
    value: (place) => place,
    cell: (place) => <HandText name={byClass() ? game.value.grid.label[hands.cells[place]] : hands.names[place]} />,
    class: "hand",
  }];
  if (acts) found.push({ head: pair ? pairNames()[0] : "", cell: (place) => <Mix from={spot.value} place={place} /> });
  if (acts && pair) {
    found.push({ head: pairNames()[1], cell: (place) => <Mix from={pair} place={place} /> },
      figure("apart", (place) => difference(hands.probabilities[place], pair.hands.probabilities[place]), percent));
  }
  if (acts && detailed) {
    found.push(...detailed.actions.map((one, action) => ({
      head: shortName(one),
      cell: (place) => <Frequency from={detailed} place={place} action={action} />,
      value: (place) => detailed.hands.probabilities[place][action],
    })));
  }
  found.push(figure("share", per("shares"), (share) => percent(share, 2)));
  if (!acts || !pair) found.push(figure("weight", per("reach"), percent));
  if (two.value) found.push(equity);
  if (!isMany.value) found.push(ev);
  if (game.value.square && neededCards() && !pair && values.value?.hands) {
    found.push(figure("EQR", (place) => realised(equity.value(place), ev.value(place), spot.value.pot_chips), (share) => percent(share, 0)));
  }
  if (acts && pair?.values) found.push(figure("EV solved", (place) => solvedEv(pair, place), amount));
  return found;
}

/* Return the rows sorted by the chosen column.  Without one, hands that mix come first, then those with larger shares; in the
   difference view the order is by share times difference.  A game without a grid then keeps its order. */
function ordered(rows, all, acts, pair) {
  const by = all.find((one) => one.value && one.head === sorting.value.by);
  if (by) return sortedRows(rows, by.value, sorting.value.down);
  if (!game.value.square && view.value !== "difference") return rows;
  const { probabilities } = spot.value.hands, share = all.find((one) => one.head === "share").value;
  const apart = (place) => (view.value === "difference" ? difference(probabilities[place], pair.hands.probabilities[place]) : 1);
  const weight = new Map(rows.map((place) => [place, share(place) * apart(place)]));
  const mixed = (place) => Number(view.value === "strategy" && acts && mixes(place));
  return [...rows].sort((one, another) =>
    mixed(another) - mixed(one) || weight.get(another) - weight.get(one) || another - one);
}
/* Sort by a column: descending, by the second click ascending, by the third in the default order. */
function sortBy(head) {
  const { by, down } = sorting.value;
  sorting.value = head !== by ? { by: head, down: true } : { by: down ? head : null, down: false };
}

function Filters() {
  if (!spot.value.hands.made) return null;
  const only = filters();
  return (
    <>
      {Object.entries({ made: "made hand", draws: "draw" }).map(([name, all]) => {
        const there = kindsThere(name), choices = KINDS[name].filter((kind) => there.has(kind));
        return choices.length > 1 && (
          <Choice key={name} id={`only-${name}`} name={all} value={only[name]} none={`any ${all}`} choices={choices}
            onChoose={(kind) => { wanted.value = { ...only, [name]: kind }; }} />
        );
      })}
    </>
  );
}

/* Return the combos of the listed hands and their share of the range as text. */
function total(rows, player) {
  const { hands } = spot.value;
  const sum = (name) => rows.reduce((all, place) => all + hands[name][player][place], 0);
  return hands.made ? `${combos(sum("reach"))}, ${percent(sum("shares"))} of the range` : "";
}

function Hands() {
  const { hands, player: actor } = spot.value, player = listedPlayer.value, acts = player === actor;
  const pair = acts ? compared.value : null, one = chosen.value !== ALL && game.value.square;
  const all = columns(player, pair), rows = ordered(listedHands(), all, acts, pair), reviewed = reviewedHand(spot.value);
  return (
    <>
      <p id="filters">
        <Filters />
        {one && <button type="button" onClick={() => { chosen.value = ALL; }}>All hands</button>}{" "}
        <span id="listed" class="quiet">{total(rows, player)}</span>
      </p>
      <SortableTable columns={all} rows={rows} sorting={sorting.value} onSort={sortBy} row={(place) => ({
        key: place,
        class: hands.reach[player][place] > 0 ? undefined : "gone",
        "aria-current": place === reviewed ? "true" : undefined,
      })} />
    </>
  );
}

const LISTS = { Hands, Classes, Blockers, "Equity graph": EquityGraph };

/* The lists of a decision's range: hands, classes, blockers and the graph of equities. */
export function HandList() {
  const { hands } = spot.value, one = chosen.value !== ALL && game.value.square;
  const there = Object.keys(LISTS).filter((name) => game.value.square && (name !== "Classes" || hands.made) && (name !== "Equity graph" || two.value));
  const name = there.includes(list.value) ? list.value : "Hands", List = LISTS[name];
  return (
    <section id="list" aria-label="Hands">
      <div class="row">
        <h2 id="hands-title">{one ? game.value.grid.label[chosen.value] : "Hands"}</h2>
        <span class="space" />
        <Toggles id="lists" name="List" value={there.length ? name : ""} choices={there.map((one) => [one, one])}
          onChoose={(one) => { list.value = one; }} />
      </div>
      <div id="hands" tabIndex="0"><List /></div>
    </section>
  );
}
