/* The view of a decision. */
import { useEffect } from "preact/hooks";
import { Actions } from "./actions.jsx";
import { route } from "./address.js";
import { BoardPicker, closePicker, openPicker, Path, pick } from "./board.jsx";
import { HandList } from "./hands.jsx";
import { NextCards, nextCards, readNextCards } from "./next_cards.jsx";
import { Grids, Views } from "./range_grid.jsx";
import { Ranges } from "./ranges.jsx";
import { loadReview, ReviewList, ReviewedDecision, reviewedHand } from "./review.jsx";
import { Tools } from "./solving.jsx";
import { ALL, chosen, compared, game, openDecision, other, pair, problem, spot } from "./study.js";

/* Adapt the page to a loaded decision: select the hand of a review, open the picker for missing board cards, and return
   the promise of the next cards' figures, or null. */
function onLoaded(found, still) {
  closePicker();
  nextCards.value = [];
  const reviewed = reviewedHand(found);
  if (reviewed >= 0) chosen.value = game.value.square ? found.hands.cells[reviewed] : ALL;
  if (found.missing_cards) openPicker();
  return found.missing_cards === 1 && pair.value ? readNextCards(found, still) : null;
}

function Decision() {
  const { classes, missing_cards: missing, line, board } = spot.value, { square } = game.value;
  const layout = ["layout", !square && "list", square && !classes && "lacking", compared.value && "compared"];
  useEffect(() => {
    document.title = `${line || "start"}${board ? ` ${board}` : ""} · ${game.value.title}`;
  }, [line, board]);
  const text = [spot.value.note, other.value?.problem && `Compared: ${other.value.problem}`].filter(Boolean).join(" ");
  return (
    <>
      <Path />
      {problem.value && <p id="problem" class="problem" role="alert">{problem.value}</p>}
      {text && <p id="note" class="note">{text}</p>}
      <BoardPicker />
      <div class={layout.filter(Boolean).join(" ")}>
        {(classes || !square) && <section id="left" aria-label="Strategy"><Views />{square && <Grids />}</section>}
        <section id="right" aria-label="Actions"><Actions /><Tools /><Ranges /></section>
        {missing === 0 && <HandList />}
        {missing === 1 && pair.value && <NextCards pick={pick} />}
      </div>
    </>
  );
}
export function Look() {
  const at = route.value, reviewing = at.tab === "review";
  useEffect(() => {
    const loaded = reviewing ? loadReview() : Promise.resolve();  // onLoaded selects the hand of the review
    loaded.then(() => { if (route.value === at) openDecision(at, onLoaded); });
  }, [at]);
  return (
    <div id="look" class={reviewing ? "reviewing" : ""}>
      {reviewing && game.value && <ReviewList />}
      {reviewing && <ReviewedDecision />}
      {spot.value ? <Decision /> : problem.value ? <p id="problem" class="problem" role="alert">{problem.value}</p>
        : <p id="note" class="note">Reading …</p>}
    </div>
  );
}
