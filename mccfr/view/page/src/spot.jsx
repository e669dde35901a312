/* The form of a spot, and its solution.  The page's address contains the form's fields, so that a link carries them.
   A solved spot is a run, which the page opens like a strategy. */
import { useEffect, useState } from "preact/hooks";
import { decisionAddress, goTo, lastDecision, route } from "./address.js";
import { Card, cardsOf, Deck, FULL_DECK } from "./cards.jsx";
import { percent, sentence } from "./figures.js";
import { address, failed, fields, fill, fillFromLast, fromText, line, paintCell, ranges, readRange, setBoard, setField, SIDES, solve, state, stop,
  watch } from "./form.js";
import { Locks, lockLine } from "./locks.jsx";
import { PaintWeight, RangeEditor } from "./range_editor.jsx";
import { Copy } from "./ranges.jsx";
import { readSaved, SavedRanges } from "./saved_ranges.jsx";
import { readSpots, SolvedSpots } from "./solved_spots.jsx";

const COMPILED = 10;       // seconds: without a result after this time, kernels are being compiled

function Field({ name, label, placeholder, title }) {
  return (
    <label>{label}{" "}
      <input id={`spot-${name}`} placeholder={placeholder} title={title} value={fields.value[name]}
        onInput={(event) => setField(name, event.target.value)} />
    </label>
  );
}
function Sides() {
  return (
    <div id="spot-sides">
      {Object.entries(SIDES).map(([side, label]) => (
        <RangeEditor key={side} side={side} label={label} text={fields.value[side]} found={ranges.value[side]}
          onType={(text) => setField(side, text)} onRead={() => readRange(side)}
          onCell={(name, weight) => paintCell(side, name, weight)}
          onPainted={(classes, weight) => readRange(side, classes, weight)}>
          <SavedRanges side={side} text={fields.value[side]} onChoose={(text) => { setField(side, text); readRange(side); }} />
        </RangeEditor>
      ))}
    </div>
  );
}
function Board() {
  const there = cardsOf(fields.value.board.trim());
  const pick = (name) => setBoard((there.includes(name) ? there.filter((card) => card !== name) : [...there, name]).join(""));
  return (
    <>
      <div class="row">
        <label for="spot-board">Board</label>
        <input id="spot-board" size="12" spellcheck={false} autoComplete="off" placeholder="Kc7d2s" value={fields.value.board}
          onInput={(event) => setField("board", event.target.value)} onChange={(event) => setBoard(event.target.value)} />
        {there.map((name) => <Card key={name} name={name} />)}
      </div>
      <Deck id="spot-deck" deck={FULL_DECK} chosen={there} onPick={pick}
        fixed={(name) => there.length >= 5 && !there.includes(name)} />
    </>
  );
}
function Sizes() {
  return (
    <>
      <div class="fields">
        <Field name="pot" label="Pot, chips" placeholder="180" />
        <Field name="stack" label="Behind, chips" placeholder="910" />
        <Field name="bets" label="Bets" placeholder={line.value ? "strategy's" : "50%"}
          title="33%, 3x, 2.5bb, 94chips, 2e or allin. A comma separates sizes, / separates streets; auto:2 chooses two sizes." />
        <Field name="raises" label="Raises" placeholder="as bets" title="60%, 3x or allin. A comma separates sizes, / separates streets." />
        <Field name="to" label="Goal, of the pot" placeholder="0.3%" title="Solve until exploitability is below this share of the pot." />
      </div>
      <details>
        <summary>More</summary>
        <div class="fields">
          <Field name="donk" label="Donk bets" placeholder="as bets" />
          <Field name="allin_spr" label="All-in up to SPR" title="A size that leaves at most this stack-to-pot ratio after a call becomes all-in." />
          <Field name="rake" label="Rake" placeholder="5%" />
          <Field name="rake_cap" label="Rake cap, chips" />
        </div>
      </details>
    </>
  );
}

function answerText({ equity, ev_chips: ev, gain_chips: gain, unlocked_gain_chips: unlocked }) {
  return Object.values(SIDES).map((name, player) => ` ${name}: equity ${percent(equity[player])}, EV ${ev[player].toFixed(2)} ` +
    `chips, could gain ${gain[player].toFixed(2)}${unlocked ? ` (${unlocked[player].toFixed(2)} without locks)` : ""}.`).join("");
}
/* Return the solution's progress and result as text. */
function stateText({ done, stopping, stopped, plan, seconds, curve, answer }) {
  const last = curve.at(-1), time = `${seconds.toFixed(0)} s`;
  const progress = last ? `: exploitability ${percent(last[1], 2)} of the pot after ${last[0]} iterations`
    : !done && seconds > COMPILED ? ": the program is being compiled, which happens once" : "";
  const doing = stopping ? "Stopping" : plan ? "Solving" : "Building the tree";
  const head = done ? `${stopped ? "Stopped after" : "Solved in"} ${time}` : `${doing}, ${time}`;
  return `${head}${progress}.${answer ? answerText(answer) : ""}`;
}
/* Return the progress from the first exploitability to the goal, 0 to 1, on a logarithmic scale. */
function shareDone({ curve, to }) {
  if (!curve.length) return undefined;
  const [first, last] = [curve[0][1], curve.at(-1)[1]];
  return Math.min(1, Math.log(first / last) / Math.log(first / to) || 0);
}
function Solution() {
  const found = state.value, sentences = found ? [...found.said, ...(found.plan ? [found.plan.text] : [])] : [];
  return (
    <>
      {found && !found.done && <progress id="spot-progress" aria-label="Progress to the goal" value={shareDone(found)} />}
      <p id="spot-plan" class="quiet">{sentences.map(sentence).join(" ")}</p>
      {found?.problem && <p class="problem" role="alert">{found.problem}</p>}
      <p id="spot-state" role="status">{found && !found.problem && stateText(found)}</p>
    </>
  );
}

export function Spot() {
  const given = route.value.fields, [at, setAt] = useState(null), running = state.value !== null && !state.value.done;
  useEffect(() => {
    document.title = "Spot · mccfr view";
    if (given.size) {
      lockLine.value = given.get("at") || "";
      setAt(given.get("at"));
      fill(given);
    } else fillFromLast();
    watch();
    readSaved();
  }, [given]);
  useEffect(() => { readSpots(); }, [running]);
  function submit(event) {
    event.preventDefault();
    solve();
  }
  return (
    <section id="spot" aria-label="Spot">
      {failed.value && <p class="problem" role="alert">{failed.value}</p>}
      <form onSubmit={submit}>
        {fromText.value && <p id="spot-from" class="note">{fromText.value} <a href={lastDecision.value}>Back to it</a></p>}
        <PaintWeight />
        <Sides />
        <Board />
        <Sizes />
        <Locks open={at !== null} />
        <div class="row">
          <button id="spot-solve" type="submit" disabled={running}>Solve</button>
          {running && <button id="spot-stop" type="button" onClick={stop}>Stop</button>}
          {state.value && state.value.of !== null && (
            <button id="spot-open" type="button" onClick={() => goTo(decisionAddress({ line: "", of: state.value.of }))}>Look at it</button>
          )}
          <span class="space" />
          <Copy id="spot-link" name="Copy link" text={() => new URL(address(), location).href} />
        </div>
      </form>
      <Solution />
      <SolvedSpots />
    </section>
  );
}
