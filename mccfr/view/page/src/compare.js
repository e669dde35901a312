/* Two strategies at one decision: their actions together, and how far apart they play. */
import { colours } from "./grid.jsx";
import { base, beside, compared, SOLVED, spot, strategyName } from "./study.js";

const ORDER = { fold: 0, call: 1, raise: 2 };
const find = (actions, wanted) => actions.find((one) => one.action === wanted.action);
export const placeOf = (actions, wanted) => actions.findIndex((one) => one.action === wanted.action);

/* The actions of the decision and of what is beside it, in the order of their amounts. */
export function allActions(there = compared.value) {
  const { actions } = spot.value;
  if (!there) return actions;
  return [...actions, ...there.actions.filter((one) => !find(actions, one))]
    .sort((one, another) => ORDER[one.kind] - ORDER[another.kind] || one.to_chips - another.to_chips);
}
/* The colours of a strategy's actions, the same for the same in both. */
export function sharedColours(actions) {
  const all = allActions(), colour = colours(all);
  return actions.map((one) => colour[placeOf(all, one)]);
}
const across = (actions, shares) => allActions().map((one) => shares[placeOf(actions, one)] || 0);
/* Half the sum of differences: the probability with which the two do something else. */
export function difference(own, others) {
  const there = across(compared.value.actions, others);
  return across(spot.value.actions, own).reduce((sum, share, place) => sum + Math.abs(share - there[place]), 0) / 2;
}

export const pairNames = () =>
  beside.value === SOLVED ? ["blueprint", "solved"] : [strategyName(base.value), strategyName(beside.value)];
export const besideName = () => (beside.value === SOLVED ? "Solved" : strategyName(beside.value));
