/* Formats figures with their units. */
import { signal } from "@preact/signals";

/* The unit of money: its name, and its size in chips of the strategy. */
export const unit = signal({ name: "chips", chips: 1 });

const UNKNOWN = "–";
export const percent = (share, digits = 1) =>
  share === null || share === undefined ? UNKNOWN : `${(100 * share).toFixed(digits)} %`;
/* Return the equity realisation (EQR), ev / (equity · pot); null if one is unknown or equity is below 1 %. */
export const realised = (equity, ev, pot) => (ev === null || !(equity >= 0.01) ? null : ev / (equity * pot));
const count = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });
export const combos = (weight) => `${count(weight)} combos`;
export const whole = (value) => value.toLocaleString("en");

/* Return chips in the unit of money as text; `money` adds the unit's name. */
export const amount = (chips) => (chips === null ? UNKNOWN : (chips / unit.value.chips).toFixed(2));
export const money = (chips) =>
  `${(chips / unit.value.chips).toLocaleString("en", { maximumFractionDigits: 2 })} ${unit.value.name}`;
export const signedMoney = (chips) => (chips > 0 ? "+" : "") + money(chips);
/* Return an amount cut to the four characters (five with a sign) that fit into a cell of the grid. */
export const shortAmount = (chips) => amount(chips).slice(0, chips < 0 ? 5 : 4).replace(/\.$/, "");
/* Return the smallest amount in chips that is not rounded to 0.00. */
export const leastChips = () => 0.005 * unit.value.chips;
/* Return the half-width of an interval, in chips, as text " ± 0.12"; "" if it would be rounded to 0. */
export const within = (half) => (half > leastChips() ? ` ± ${amount(half)}` : "");

/* Return the weighted mean of value(place) over places, without nulls; null if their weight is 0. */
export function mean(places, weight, value) {
  let sum = 0, all = 0;
  for (const place of places) {
    const one = value(place);
    if (one === null || !(weight[place] > 0)) continue;
    sum += weight[place] * one;
    all += weight[place];
  }
  return all > 0 ? sum / all : null;
}

export const blinds = (value) => `${value.toFixed(2)} BB`;
export const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
