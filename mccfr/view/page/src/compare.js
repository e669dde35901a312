/* Two strategies at one decision: their actions together, and how far apart they play. */
import { colours } from "./grid.jsx";
import { base, beside, compared, SOLVED, spot, strategyName } from "./study.js";

const ORDER = { fold: 0, call: 1, raise: 2 };
export const placeOf = (actions, wanted) => actions.findIndex((one) => one.action === wanted.action);

/* The actions of the decision and of what is beside it, in the order of their amounts. */
export function allActions(there = compared.value) {
  const { actions } = spot.value;
  if (!there) return actions;
  return [...actions, ...there.actions.filter((one) => placeOf(actions, one) < 0)]
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

const MOST_SAME = 8;   // letters with which two names may begin alike
/* Names of the two; a long beginning that both have is left out, because narrow columns cut names off. */
export function pairNames() {
  if (beside.value === SOLVED) return ["blueprint", "solved"];
  const [one, another] = [base.value, beside.value].map((which) => strategyName(which) || "");
  const apart = [...one].findIndex((letter, place) => letter !== another[place]);
  const cut = one.slice(0, Math.max(apart, 0)).search(/[^-_, ]*$/);
  return cut > MOST_SAME ? [one, another].map((name) => `…${name.slice(cut)}`) : [one, another];
}
