/* The actions of a decision: frequency in the range and EV of each. */
import { BetForm } from "./bet_form.jsx";
import { amount, combos, money, percent, within } from "./figures.js";
import { allActions, pairNames, placeOf } from "./compare.js";
import { colours } from "./grid.jsx";
import { game, go, other, spot, take, values } from "./study.js";

/* Return the keys of actions: f for a fold, c for a check or call, and 1, 2, ... for bets and raises. */
export function keysOf(actions) {
  let raised = 0;
  return actions.map((one) => (one.kind === "fold" ? "f" : one.kind === "call" ? "c" : String(++raised)));
}

/* Return the number of combos of the range that take an action. */
function combosOf(action) {
  const { hands, player } = spot.value;
  return hands.probabilities.reduce((sum, row, hand) => sum + row[action] * hands.reach[player][hand], 0);
}
function potShare(share) {
  if (share === null) return "";
  return share > 3 ? `${share.toFixed(0)}× pot` : `${Math.round(100 * share)} % pot`;
}
function frequency(from, place) {
  if (!from.hands) return "";
  return place < 0 ? "0.0 %" : from.frequencies ? percent(from.frequencies[place]) : "–";
}

function Action({ one, colour, there }) {
  const place = placeOf(spot.value.actions, one), own = place >= 0, key = own ? keysOf(spot.value.actions)[place] : "";
  const ev = values.value?.taken?.[place] ?? null;  // mean EV of the hands that take it
  const placeThere = there ? placeOf(there.actions, one) : -1;
  const solvedEv = there?.taken?.[placeThere] ?? null;
  const details = [
    potShare(one.pot_share),
    own && spot.value.hands && game.value.square && combos(combosOf(place)),
    one.ends && "ends the hand",
    ev !== null && `EV of the hands that take it ${amount(ev)}${within(values.value.taken_within[place])}`,
    solvedEv !== null && `solved ${amount(solvedEv)}`,
  ].filter(Boolean).join(" · ");
  return (
    <button type="button" class="action" data-action={one.action} disabled={one.ends} onClick={() => take(one)}
      title={one.ends ? "The hand ends here" : `Take this action${own ? ` (${key})` : ""}`}>
      <i class={colour} />
      <span>{one.name} <small>{details}</small></span>
      <span class="share">{frequency(spot.value, place)}</span>
      {there && <span class="share">{frequency(there, placeThere)}</span>}
      {one.ends || !own ? <span /> : <kbd>{key}</kbd>}
    </button>
  );
}

export function Actions() {
  const { role, line, pot_chips: pot, behind_chips: behind, put_in_chips: putIn, street, actions } = spot.value;
  const there = other.value?.actions ? other.value : null, all = allActions(there), colour = colours(all);
  const stacks = spot.value.left.map((player) =>
    `${game.value.roles[player]} ${behind ? `${money(behind[player])} behind` : `has put in ${money(putIn[player])}`}`);
  return (
    <>
      <h2 id="who">{role} to act</h2>
      <p class="quiet">{[`Pot ${money(pot)}`, ...stacks].join(" · ")}</p>
      <div id="actions" class={there ? "two" : ""}>
        {there && (
          <div class="action heads">
            <i /><span />{pairNames().map((name) => <small key={name} title={name}>{name}</small>)}<span />
          </div>
        )}
        {all.map((one, place) => <Action key={one.action} {...{ one, there, colour: colour[place] }} />)}
      </div>
      {game.value.any_bet && actions.some((one) => one.kind === "raise") && (
        <BetForm id="other" label="Another bet, to" here={street > 0} onBet={(action) => go(line + action)} />
      )}
    </>
  );
}
