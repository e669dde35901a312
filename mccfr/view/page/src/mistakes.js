/* Mistakes and scores, which this browser keeps: mistakes until they are not made again, scores by day. */
import { signal } from "@preact/signals";

const KEY = "mccfr-trainer";
const MOST = 200;  // mistakes; the cheapest are dropped

function kept() {
  try { return JSON.parse(localStorage.getItem(KEY)) || { mistakes: [], days: {} }; } catch { return { mistakes: [], days: {} }; }
}
const trainer = signal(kept());
function keep(changed) {
  trainer.value = { ...trainer.value, ...changed };
  try { localStorage.setItem(KEY, JSON.stringify(trainer.value)); } catch { /* they are of this session alone */ }
}

/* A mistake: {strategy, seed, drill, hand, line, cards, name, cost in chips, 1 where that is not known}. */
const isSame = (one, other) => ["strategy", "seed", "drill", "hand", "line"].every((key) => one[key] === other[key]);
export const mistakesOf = (strategy) => trainer.value.mistakes.filter((one) => one.strategy === strategy);
/* Pairs of a day and its {decisions, cost}, the newest first. */
export const daysOf = (strategy) => Object.entries(trainer.value.days)
  .map(([day, all]) => [day, all[strategy]]).filter(([, score]) => score).sort().reverse();

/* Count a decision; a costly one is kept, and one that is right now is kept no longer. */
export function count(decision, wrong) {
  const { strategy, cost } = decision, day = new Date().toLocaleDateString("sv"), { mistakes, days } = trainer.value;
  const others = mistakes.filter((one) => !isSame(one, decision));
  const before = days[day]?.[strategy] || { decisions: 0, cost: 0 };
  const score = { decisions: before.decisions + 1, cost: before.cost + cost };
  keep({
    mistakes: (wrong ? [...others, decision] : others).sort((one, other) => other.cost - one.cost).slice(0, MOST),
    days: { ...days, [day]: { ...days[day], [strategy]: score } },
  });
}
