/* The trainer: the strategy's frequencies and the cost of the user's decisions, after each decision or at the end of the
   hand.  It shows the session's score and mistakes to try again. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { HandText } from "./cards.jsx";
import { money, percent, within } from "./figures.js";
import { sentenceOf } from "./requests.js";
import { count, daysOf, mistakesOf } from "./mistakes.js";
import { ask, game, isMany, split, streetCards } from "./study.js";
import { dealAgain, session, table } from "./table_of_play.js";

const SHOWN = 10;    // number of mistakes that are shown

const on = signal(false);
const verdicts = signal([]);   // on decisions of this hand: {line, text, kind}
const NO_SCORE = { decisions: 0, cost: 0 };
const score = signal(NO_SCORE);   // of the session
let judged = {};               // session and hand of the verdicts, and whether the hand was over
let judging = Promise.resolve();

/* Return the strategy's frequencies with a hand, and the EV of each action if it is known. */
const mixText = (actions) => actions.map(({ name, frequency, ev_chips: ev, within_chips: half }) =>
  `${name} ${percent(frequency)}${ev === null ? "" : ` (EV ${money(ev)}${within(half)})`}`).join(", ");
/* Judge a decision.  Show the verdict unless another hand has begun, and count it unless another session has begun. */
async function judge(at, one, hand) {
  const where = { line: one.line, board: split(at.board).slice(0, streetCards(one.street)).join("") }, { cards } = at;
  const mine = judged.session;
  const put = (verdict) => {
    if (hand !== judged.hand) return;
    verdicts.value = verdicts.value.map((old) => (old.line === one.line ? { line: one.line, ...verdict } : old));
  };
  try {
    const found = await ask("/api/cost", { ...where, hand: cards, action: one.action });
    const { verdict } = found, wrong = verdict === "costly" || verdict === "rare";
    const cost = isMany.value ? Number(wrong) : found.cost_chips ?? 0;  // costs are unknown with more than two players
    put({ text: `You: ${one.name}; the strategy: ${mixText(found.actions)}. ${found.sentences.join(" ")}`, kind: verdict || "quiet" });
    if (verdict === null || mine !== judged.session) return;
    count({ strategy: game.value.title, seed: at.seed, drill: at.drilled, hand: at.hand, line: one.line, name: one.name, cards, cost }, wrong);
    if (!at.again) score.value = { decisions: score.value.decisions + 1, cost: score.value.cost + cost };
  } catch (error) { put({ text: `You: ${one.name}. ${sentenceOf(error)}`, kind: "quiet" }); }
}
/* Judge the user's new decisions at the table, one after the other. */
function follow(at) {
  const over = at.result !== null, key = `${session.value} ${at.hand} ${at.again}`;
  if (session.value !== judged.session) score.value = NO_SCORE;
  if (key !== judged.hand || (judged.over && !over)) verdicts.value = [];
  judged = { session: session.value, hand: key, over };
  if (!on.value && !over) return;  // the box is not checked: judge decisions once the hand is over
  const own = at.log.filter((one, place) => one.player === at.position && place >= at.opened);
  for (const one of own.filter(({ line }) => !verdicts.value.some((verdict) => verdict.line === line))) {
    verdicts.value = [...verdicts.value, { line: one.line, text: `${one.name}: …` }];
    judging = judging.then(() => judge(at, one, key));
  }
}
function scoreText({ decisions, cost }) {
  if (!decisions) return "";
  const count = `${decisions} ${decisions === 1 ? "decision" : "decisions"}`;
  return isMany.value ? `${count}, ${decisions - cost} as the strategy plays` : `${count}, ${money(cost)} lost, ${money(cost / decisions)} on average`;
}

/* The score of each day. */
function Progress() {
  const days = daysOf(game.value.title);
  if (!days.length) return null;
  return (
    <details>
      <summary>Progress over time</summary>
      <ul id="train-days">{days.map(([day, found]) => <li key={day}>{day}: {scoreText(found)}</li>)}</ul>
    </details>
  );
}

export function Trainer({ children }) {
  const at = table.value;
  useEffect(() => follow(at), [at, on.value]);
  const mistakes = mistakesOf(game.value.title);
  return (
    <section id="train" aria-label="Trainer">
      <p class="row">
        <label><input id="train-on" type="checkbox" checked={on.value} onChange={(event) => { on.value = event.target.checked; }} /> Judge each decision</label>
        {children}
        <span id="train-score" class="quiet" role="status">{scoreText(score.value)}</span>
      </p>
      <div id="train-told">
        {verdicts.value.map(({ line, text, kind }) => <p key={line} class={kind}>{text}</p>)}
      </div>
      <Progress />
      {mistakes.length > 0 && <h2>Mistakes to try again: {mistakes.length}</h2>}
      <p id="train-again" class="row">
        {mistakes.slice(0, SHOWN).map((one) => (
          <button key={`${one.seed} ${one.hand} ${one.line}`} type="button" title="Play this hand again" onClick={() => dealAgain(one)}>
            <HandText name={one.cards} /> {one.name} {!isMany.value && money(one.cost)}
          </button>
        ))}
      </p>
    </section>
  );
}
