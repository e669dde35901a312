/* A review of hands: the list of its decisions, the costliest first, and a sentence on the chosen one. */
import { signal } from "@preact/signals";
import { decisionAddress, goTo, route } from "./address.js";
import { Card, HandText } from "./cards.jsx";
import { Choice } from "./controls.jsx";
import { blinds, percent, whole } from "./figures.js";
import { attempt, get } from "./requests.js";
import { problem, split } from "./study.js";

const FILTERS = { street: "any street", player: "any player" };
const review = signal(null);  // answer of /api/review
const filter = signal({ street: "", player: "" });

const here = () => review.value?.rows.find((one) => String(one.place) === route.value.review);

const read = (which) => attempt(problem, async () => {
  review.value = await get("/api/review", which);
  filter.value = which;
});
const go = (one) => goTo(`${one.link || "#line="}&review=${one.place}`);
export async function loadReview() { if (!review.value) await read(filter.value); }
export async function openReview() {
  await loadReview();
  if (review.value?.rows.length) go(review.value.rows[0]);
}

/* Return the index of the reviewed hand if a decision is the chosen one of the review, else -1. */
export function reviewedHand({ line, board, hands }) {
  const one = here();
  if (one?.link !== decisionAddress({ line, board }) || !hands) return -1;
  const sorted = (text) => split(text).sort().join("");
  return hands.names.findIndex((name) => sorted(name) === sorted(one.hand));
}

const interval = (one) => `95 %: ${one.ci95_bb.map((end) => end.toFixed(2)).join(" to ")} BB`;
/* Return the EV loss as text; the server gives shown_bb = 0 for an estimate whose interval contains 0. */
function costText(one) {
  if (one.cost_bb === null) return `has no cost; ${one.shares}`;
  if (Math.abs(one.shown_bb) < 0.005) {
    return one.ci95_bb ? `has a cost that cannot be distinguished from 0 (${interval(one)})` : "costs nothing";
  }
  const money = one.tournament ? "" : ` (${one.currency}${one.cost.toFixed(2)})`;
  return `costs ${one.ci95_bb ? "about " : ""}${blinds(one.shown_bb)}${money}${one.ci95_bb ? `, ${interval(one)}` : ""}`;
}
function decisionSentence(one) {
  const pot = one.pot === "folded first in" ? one.pot : `${one.pot} pot`;
  const from = one.how === "solved again" ? "the solution" : "the strategy";
  return `${one.player}, ${one.position}, ${pot}: ${one.did} with ${one.hand} (${from}: ${percent(one.probability)}) ` +
    `${costText(one)}${one.best && `; the best is ${one.best}`}.${one.source} ${one.where}.`;
}
function summary({ title, hands, decisions, cost_bb: cost, rows, note }) {
  const most = rows.length < decisions ? `; the costliest ${rows.length}` : "";
  return `${title}, ${whole(hands)} hands: ${whole(decisions)} decisions cost ${blinds(cost)}${most}.` +
    (note && ` ${note}`);
}

function Row({ one }) {
  return (
    <button type="button" class="review-row" title={one.where} data-place={one.place} onClick={() => go(one)}
      aria-current={String(one.place) === route.value.review ? "true" : undefined}>
      <b>{one.cost_bb === null ? "–" : one.shown_bb.toFixed(2)}</b>
      <span><HandText name={one.hand} /></span>
      <span class="cards">{split(one.board).map((name) => <Card key={name} name={name} />)}</span>
      <small>{one.player}, {one.position}, {one.street}: {one.did}{one.best && `, best ${one.best}`}</small>
    </button>
  );
}
export function ReviewList() {
  if (!review.value) return null;
  const { rows } = review.value;
  return (
    <section id="review" aria-label="Review">
      <p class="quiet">{summary(review.value)}</p>
      <p class="row">
        {Object.entries(FILTERS).map(([name, all]) => (
          <Choice key={name} id={`review-${name}`} name={name} value={filter.value[name]} none={all} choices={review.value[`${name}s`]}
            onChoose={(one) => read({ ...filter.value, [name]: one })} />
        ))}
      </p>
      <div id="review-rows">{rows.map((one) => <Row key={one.place} one={one} />)}</div>
    </section>
  );
}
export function ReviewedDecision() {
  const one = here();
  return one ? <p id="review-told" class="note">{decisionSentence(one)}</p> : null;
}
