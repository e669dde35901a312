/* Comparison of two strategies at one decision: all their actions, and the difference of their probabilities. */
import { colours } from "./grid.jsx";
import { base, beside, compared, SOLVED, spot, strategyName } from "./study.js";

const ORDER = { fold: 0, call: 1, raise: 2 };
/* Return the index of an action in a list of actions, or -1. */
export const placeOf = (actions, wanted) => actions.findIndex((one) => one.action === wanted.action);

/* Return the actions of the decision and of the compared one: fold, check or call, then bets and raises by amount. */
export function allActions(there = compared.value) {
  const { actions } = spot.value;
  if (!there) return actions;
  return [...actions, ...there.actions.filter((one) => placeOf(actions, one) < 0)]
    .sort((one, another) => ORDER[one.kind] - ORDER[another.kind] || one.to_chips - another.to_chips);
}
/* Return the colours of a strategy's actions; an action has the same colour in both strategies. */
export function sharedColours(actions) {
  const all = allActions(), colour = colours(all);
  return actions.map((one) => colour[placeOf(all, one)]);
}
/* Return the shares by `allActions()`, 0 for an action that the strategy does not have. */
const across = (actions, shares) => allActions().map((one) => shares[placeOf(actions, one)] || 0);
/* Return half the sum of absolute differences of the probabilities (total variation distance). */
export function difference(own, others) {
  const there = across(compared.value.actions, others);
  return across(spot.value.actions, own).reduce((sum, share, place) => sum + Math.abs(share - there[place]), 0) / 2;
}

const MOST_SAME = 8;   // length of the longest common beginning of two names that is shown
/* Return the names of the two strategies, without a long common beginning, because narrow columns cut off the ends. */
export function pairNames() {
  if (beside.value === SOLVED) return ["blueprint", "solved"];
  const [one, another] = [base.value, beside.value].map((which) => strategyName(which) || "");
  const apart = [...one].findIndex((letter, place) => letter !== another[place]);
  const cut = one.slice(0, Math.max(apart, 0)).search(/[^-_, ]*$/);
  return cut > MOST_SAME ? [one, another].map((name) => `…${name.slice(cut)}`) : [one, another];
}
