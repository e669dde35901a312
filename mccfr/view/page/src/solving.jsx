/* Tools of a decision: compare it with another strategy, solve it again, or open it in the form of a spot. */
import { decisionAddress, goTo, spotAddress } from "./address.js";
import { Choice } from "./controls.jsx";
import { amount, percent, unit } from "./figures.js";
import { base, beside, compareWith, game, isMany, neededCards, otherStrategies, pair, SOLVED, solveAgain, solved,
  spot, stopSolving, values } from "./study.js";

const ROUGH = 0.05;  // share of the pot: a solution of larger exploitability is called imprecise

function Compare() {
  const names = otherStrategies().map(([number, name]) => [String(number), name]);
  if (solved.value?.result) names.push([SOLVED, "this spot, solved"]);
  return names.length > 0 && (
    <p><Choice id="beside" label="Compare with" value={beside.value} none="nothing" choices={names} onChoose={compareWith} /></p>
  );
}

/* Return the address of the form for this decision, or null if there is none.  For a solved spot the form has the spot's
   own fields, else it begins at the street's start in the strategy's line.  at: in a solved spot, the line to lock */
function formAddress(at) {
  const { line, board, behind_chips: behind, missing_cards: missing } = spot.value, { asked, square } = game.value;
  if (asked) return spotAddress(at === undefined ? asked : { ...asked, at });
  const street = line.slice(0, line.lastIndexOf("/") + 1), folded = line.slice(street.length).includes("f");  // true: three players began the street
  const begins = square && behind && street && !missing && pair.value && !folded && neededCards() >= 3;
  return begins ? spotAddress({ line: street, board, of: base.value }) : null;
}
/* Return the solution's progress as text, and its exploitability. */
function progressText({ problem: failed, done, seconds, result, iterations }) {
  if (failed) return failed;
  const time = done ? `Solved in ${seconds.toFixed(1)} s` : `Solving, ${seconds.toFixed(0)} s`;
  if (!result) return `${time} …`;
  const progress = `${time}: ${result.iterations} of ${iterations} iterations`;
  if (result.gap_chips !== null) {
    const chips = result.gap_chips / 2, share = chips / spot.value.pot_chips;  // the gap is what both players can gain
    return `${progress}, exploitability ${amount(chips)} ${unit.value.name} (${percent(share, 2)} of the pot)` +
      (share > ROUGH ? ": not precise enough to play by" : "");
  }
  if (done) return `${progress}, an estimate: exploitability is not computed on a flop`;
  return result.iterations === iterations ? `${progress}, computing EV …` : progress;
}
function Solve() {
  const { line, board } = spot.value, form = formAddress(), flop = neededCards() === 3;
  const solvable = neededCards() >= 3, ready = game.value.any_bet && !isMany.value && solvable && !spot.value.missing_cards;
  if (game.value.any_bet && !solvable) return <p id="solve-state" class="quiet">Spots can be solved from the flop on: the tree before the flop is too large.</p>;
  if (!pair.value) return <p id="solve-state" class="quiet">Spots can be solved once two players are left.</p>;
  const here = solved.value?.line === line && solved.value.board === board ? solved.value : null;
  const running = here !== null && !here.done;
  const text = here ? progressText(here) : ready && flop
    ? "On later streets hands share the strategy's buckets. Change it first solves a flop with each hand separately, in minutes."
    : "";
  return (
    <div id="solving">
      {ready && (
        <>
          <button id="solve" type="button" title="Solve from this decision on, with real hands and the current ranges" disabled={running} onClick={solveAgain}>
            Solve this spot
          </button>{" "}
          {running && <button type="button" onClick={stopSolving}>Stop</button>}{" "}
        </>
      )}
      {form && (
        <button id="change" type="button" title="Edit ranges, pot, stacks, bets and locks of the spot, from the start of the street"
          onClick={() => goTo(form)}>Change it first</button>
      )}{" "}
      {game.value.asked && (
        <button id="lock" type="button" title="Fix the frequencies of this decision; the next solve adapts all other decisions to them"
          onClick={() => goTo(formAddress(line))}>Lock this decision</button>
      )}
      {running && <progress aria-label="Iterations" value={here.result ? here.result.iterations / here.iterations : 0} />}
      <p id="solve-state" class="quiet" role="status">{text}</p>
    </div>
  );
}
/* A link from a solved spot to the strategy's line that it was taken from. */
function WayBack() {
  const { asked } = game.value;
  if (!asked?.line) return null;
  return <p><a id="way-back" href={decisionAddress({ line: asked.line, board: asked.board, of: asked.of })}>Back to {asked.line} of the strategy</a></p>;
}

export function Tools() {
  return <div id="tools"><WayBack /><Compare /><Solve /><p id="worth" class="quiet" role="status">{values.value?.note}</p></div>;
}
