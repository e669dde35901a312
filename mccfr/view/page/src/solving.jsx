/* What can be done with a decision: compare it, solve it again, estimate its values, take it as a spot. */
import { decisionAddress, goTo, spotAddress } from "./address.js";
import { Choice } from "./controls.jsx";
import { amount, percent, unit } from "./figures.js";
import { base, beside, compareWith, game, isMany, neededCards, otherStrategies, pair, SOLVED, solveAgain, solved,
  spot, stopSolving, values } from "./study.js";

const ROUGH = 0.1;  // of the pot: what can be beaten by more is no answer

function Compare() {
  const names = otherStrategies().map(([number, name]) => [String(number), name]);
  if (solved.value?.result) names.push([SOLVED, "this spot, solved"]);
  return names.length > 0 && (
    <p><Choice id="beside" label="Compare with" value={beside.value} none="nothing" choices={names} onChoose={compareWith} /></p>
  );
}

/* The form of the spot: a solved one with its fields, a strategy's line with its ranges, pot and stacks; null where there is
   none.  `at` is a line whose actions are to be locked. */
function formAddress(at) {
  const { line, board, behind_chips: behind, missing_cards: missing } = spot.value, { asked, square } = game.value;
  if (asked) return spotAddress(at === undefined ? asked : { ...asked, at });
  const street = line.slice(0, line.lastIndexOf("/") + 1), folded = line.slice(street.length).includes("f");  // a third player
  const begins = square && behind && street && !missing && pair.value && !folded && neededCards() >= 3;
  return begins ? spotAddress({ line: street, board, of: base.value }) : null;
}
/* How far the solution has come, and how good it is. */
function progressText({ problem: failed, done, seconds, result, iterations }) {
  if (failed) return failed;
  const time = done ? `Solved in ${seconds.toFixed(1)} s` : `Solving, ${seconds.toFixed(0)} s`;
  if (!result) return `${time} …`;
  const far = `${time}: ${result.iterations} of ${iterations} iterations`;
  if (result.gap_chips !== null) {
    const share = result.gap_chips / spot.value.pot_chips;
    return `${far}, can be beaten by ${amount(result.gap_chips)} ${unit.value.name} (${percent(share)} of the pot)` +
      (share > ROUGH ? ": too rough to play by" : "");
  }
  if (done) return `${far}, an estimate: by how much it can be beaten is not known`;
  return result.iterations === iterations ? `${far}, finding EV …` : far;
}
function Solve() {
  const { line, board } = spot.value, form = formAddress(), flop = neededCards() === 3;
  const solvable = neededCards() >= 3, ready = game.value.any_bet && !isMany.value && solvable && !spot.value.missing_cards;
  if (game.value.any_bet && !solvable) return <p id="solve-state" class="quiet">Spots are solved from the flop on: before it too much follows.</p>;
  if (!pair.value) return <p id="solve-state" class="quiet">Spots are solved where two players are left.</p>;
  const here = solved.value?.line === line && solved.value.board === board ? solved.value : null;
  const running = here !== null && !here.done;
  const text = here ? progressText(here) : ready && flop
    ? "On later streets hands share the strategy's buckets; changed first, a flop is solved with every hand for itself, in minutes."
    : "";
  return (
    <div id="solving">
      {ready && (
        <>
          <button id="solve" type="button" title="From here on, on real hands, with the ranges as they are" disabled={running} onClick={solveAgain}>
            Solve this spot
          </button>{" "}
          {running && <button type="button" onClick={stopSolving}>Stop</button>}{" "}
        </>
      )}
      {form && (
        <button id="change" type="button" title="Its ranges, pot, stacks, bets and locks, from the street's beginning"
          onClick={() => goTo(form)}>Change it first</button>
      )}{" "}
      {game.value.asked && (
        <button id="lock" type="button" title="Paint what is played here; solved again, all else answers it"
          onClick={() => goTo(formAddress(line))}>Lock this decision</button>
      )}
      {running && <progress aria-label="Iterations" value={here.result ? here.result.iterations / here.iterations : 0} />}
      <p id="solve-state" class="quiet" role="status">{text}</p>
    </div>
  );
}
/* The line of the strategy that a solved spot was taken from. */
function WayBack() {
  const { asked } = game.value;
  if (!asked?.line) return null;
  return <p><a id="way-back" href={decisionAddress({ line: asked.line, board: asked.board, of: asked.of })}>Back to {asked.line} of the strategy</a></p>;
}

export function Tools() {
  return <div id="tools"><WayBack /><Compare /><Solve /><p id="worth" class="quiet" role="status">{values.value?.note}</p></div>;
}
