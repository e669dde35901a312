/* The list of a decision's hands: what each does, how often it occurs, its equity and EV. */
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

const MIXED = 0.95;         // a hand mixes that does nothing more often
const NO_DRAW = "no draw";
/* Kinds of hands, the best first, as the server names them. */
const KINDS = {
  made: ["straight flush", "four of a kind", "full house", "flush", "straight", "set", "trips", "two pair", "overpair",
    "top pair", "second pair", "low pair", "underpair", "high card"],
  draws: ["flush draw", "open-ended", "gutshot", NO_DRAW],
};
const sorting = signal({ by: null, down: true });  // by null: hands that mix first, then by share
const list = signal("Hands");                      // which of LISTS is shown
const wanted = signal({ made: "", draws: "" });    // what listed hands make and may make; "": all

const drawsOf = (text) => (text ? text.split(", ") : [NO_DRAW]);
const kindsThere = (name) => {
  const { hands } = spot.value;
  return new Set(name === "made" ? hands.made : hands.draws.flatMap(drawsOf));
};
/* The filters that have an effect here. */
function filters() {
  if (!spot.value.hands.made) return {};
  return Object.fromEntries(Object.entries(wanted.value).map(([name, kind]) =>
    [name, kindsThere(name).has(kind) ? kind : ""]));
}
function passes(place, only) {
  const { made, draws } = spot.value.hands;
  return (!only.made || made[place] === only.made) && (!only.draws || drawsOf(draws[place]).includes(only.draws));
}

/* Whether hands are listed by class, as before the flop, and not one by one. */
const byClass = () => game.value.square && chosen.value === ALL && !neededCards();
/* The hands that are listed, by their places. */
function listed() {
  const { hands } = spot.value, seen = new Set(), only = filters();
  return hands.names.map((_, place) => place).filter((place) => {
    const cell = hands.cells[place], first = !byClass() || !seen.has(cell);
    seen.add(cell);
    return first && (chosen.value === ALL || !game.value.square || cell === chosen.value) && passes(place, only);
  });
}

/* Mean of values over the hands that a row of the list stands for; null where there is none. */
function meanOfRow(place, found, action) {
  const at = (hand) => (action === undefined ? found[hand] : found[hand][action]);
  if (!byClass()) return at(place);
  const { cells } = spot.value.hands;
  const known = found.map((_, hand) => at(hand)).filter((one, hand) => cells[hand] === cells[place] && one !== null);
  return known.length ? known.reduce((sum, one) => sum + one) / known.length : null;
}
/* EV of an action of a strategy with a hand, in chips; null where it is not known. */
function evOf(from, place, action) {
  const found = from === spot.value ? values.value?.actions : from.values;
  return found ? meanOfRow(place, found, action) : null;
}
function actionLabel(from, place, action) {
  const ev = evOf(from, place, action), half = from === spot.value && ev !== null
    ? within(meanOfRow(place, values.value.actions_within, action)) : "";
  return `${from.actions[action].name} ${percent(from.hands.probabilities[place][action])}${ev === null ? "" : `, EV ${amount(ev)}${half}`}`;
}
const solvedEv = (pair, place) => pair.values[place].reduce((sum, value, action) =>
  sum === null || value === null ? null : sum + value * pair.hands.probabilities[place][action], 0);
/* Whether a hand does several things, so that a player has to know how often. */
const mixes = (place) => spot.value.hands.shares[spot.value.player][place] > 0 &&
  Math.max(...spot.value.hands.probabilities[place]) < MIXED;

function Mix({ from, place }) {
  const untrained = from === spot.value && !spot.value.hands.trained[place];
  const title = (untrained ? "Training never came here with this hand: all actions alike. " : "") +
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
  const rough = (place) => within(values.value?.hands ? meanOfRow(place, values.value.hands_within[player]) : 0);
  ev.cell = (place) => <>{amount(ev.value(place))}{rough(place) && <small>{rough(place)}</small>}</>;
  const told = !pair ? spot.value : pair.values ? pair : null;
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
  if (acts && told) {
    found.push(...told.actions.map((one, action) => ({
      head: shortName(one),
      cell: (place) => <Frequency from={told} place={place} action={action} />,
      value: (place) => told.hands.probabilities[place][action],
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

/* Rows in the order that was chosen: by a column, or those that mix first. */
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
/* A first time down, then up, then the first order again. */
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

/* How many hands are listed, and how much of the range they are. */
function total(rows, player) {
  const { hands } = spot.value;
  const sum = (name) => rows.reduce((all, place) => all + hands[name][player][place], 0);
  return hands.made ? `${combos(sum("reach"))}, ${percent(sum("shares"))} of the range` : "";
}

function Hands() {
  const { hands, player: actor } = spot.value, player = listedPlayer.value, acts = player === actor;
  const pair = acts ? compared.value : null, one = chosen.value !== ALL && game.value.square;
  const all = columns(player, pair), rows = ordered(listed(), all, acts, pair), reviewed = reviewedHand(spot.value);
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

/* The lists of a decision's range: its hands, and what they have in common. */
export function HandList() {
  const { hands } = spot.value, one = chosen.value !== ALL && game.value.square;
  const there = Object.keys(LISTS).filter((name) => game.value.square && (name !== "Classes" || hands.made) && (name !== "Equity graph" || two.value));
  const name = there.includes(list.value) ? list.value : "Hands", List = LISTS[name];
  return (
    <section id="list" aria-label="Hands">
      <div class="row">
        <h2 id="hands-title">{one ? game.value.grid.label[chosen.value] : "Hands"}</h2>
        <span class="space" />
        <Toggles id="lists" name="What is listed" value={there.length ? name : ""} choices={there.map((one) => [one, one])}
          onChoose={(one) => { list.value = one; }} />
      </div>
      <div id="hands" tabIndex="0"><List /></div>
    </section>
  );
}
