/* How figures are written, each with its unit. */
import { signal } from "@preact/signals";

/* The unit of money, and how many of the strategy's chips it has. */
export const unit = signal({ name: "chips", chips: 1 });

const UNKNOWN = "–";
export const percent = (share, digits = 1) =>
  share === null || share === undefined ? UNKNOWN : `${(100 * share).toFixed(digits)} %`;
/* EV as a share of what equity would win of the pot: not known, or not worth telling, below one per cent of equity. */
export const realised = (equity, ev, pot) => (ev === null || !(equity >= 0.01) ? null : ev / (equity * pot));
const count = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });
export const combos = (weight) => `${count(weight)} combos`;
export const whole = (value) => value.toLocaleString("en");

/* Chips in the unit of money, without and with its name. */
export const amount = (chips) => (chips === null ? UNKNOWN : (chips / unit.value.chips).toFixed(2));
export const money = (chips) =>
  `${(chips / unit.value.chips).toLocaleString("en", { maximumFractionDigits: 2 })} ${unit.value.name}`;
export const signedMoney = (chips) => (chips > 0 ? "+" : "") + money(chips);
/* As much of an amount as a cell of the grid holds. */
export const shortAmount = (chips) => amount(chips).slice(0, chips < 0 ? 5 : 4).replace(/\.$/, "");
/* The least amount that is told from 0. */
export const leastChips = () => 0.005 * unit.value.chips;
/* Half the width of an interval behind its mean, where it can be told from 0. */
export const within = (half) => (half > leastChips() ? ` ± ${amount(half)}` : "");

/* Weighted mean over places of values; null where no weight is. */
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
