/* The trainer's mistakes and daily scores, in the browser's storage.  A mistake stays until the user decides it correctly. */
import { signal } from "@preact/signals";

const KEY = "mccfr-trainer";
const MOST = 200;  // stored mistakes; beyond it those of the lowest cost are dropped

function readStorage() {
  try { return JSON.parse(localStorage.getItem(KEY)) || { mistakes: [], days: {} }; } catch { return { mistakes: [], days: {} }; }
}
const trainer = signal(readStorage());
function store(changed) {
  trainer.value = { ...trainer.value, ...changed };
  try { localStorage.setItem(KEY, JSON.stringify(trainer.value)); } catch { /* storage is blocked: the data ends with the page */ }
}

/* A mistake is {strategy, seed, drill, hand, line, cards, name, cost}; the cost is in chips; with more than two players it is 1. */
const isSame = (one, other) => ["strategy", "seed", "drill", "hand", "line"].every((key) => one[key] === other[key]);
export const mistakesOf = (strategy) => trainer.value.mistakes.filter((one) => one.strategy === strategy);
/* Return pairs of a day and its {decisions, cost}, the newest first. */
export const daysOf = (strategy) => Object.entries(trainer.value.days)
  .map(([day, all]) => [day, all[strategy]]).filter(([, score]) => score).sort().reverse();

/* Count a decision in the day's score.  Store it as a mistake if it is wrong, else remove an earlier mistake at it. */
export function count(decision, wrong) {
  const { strategy, cost } = decision, day = new Date().toLocaleDateString("sv"), { mistakes, days } = trainer.value;
  const others = mistakes.filter((one) => !isSame(one, decision));
  const before = days[day]?.[strategy] || { decisions: 0, cost: 0 };
  const score = { decisions: before.decisions + 1, cost: before.cost + cost };
  store({
    mistakes: (wrong ? [...others, decision] : others).sort((one, other) => other.cost - one.cost).slice(0, MOST),
    days: { ...days, [day]: { ...days[day], [strategy]: score } },
  });
}
