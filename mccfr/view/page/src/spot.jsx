/* The form of a spot that is typed or painted, and its solution.  Its fields stand in the address, so that a link carries
   them; what is solved is looked at as a run. */
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

const COMPILED = 10;       // seconds after which there is something to see, but the first time

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
        <Field name="bets" label="Bets" placeholder={line.value ? "its own" : "50%"}
          title="33%, 3x, 2.5bb, 94chips, 2e, allin; commas part sizes, / streets; auto:2 chooses two" />
        <Field name="raises" label="Raises" placeholder="as bets" title="60%, 3x, allin; commas part sizes, / streets" />
        <Field name="to" label="Until, of the pot" placeholder="0.3%" />
      </div>
      <details>
        <summary>More</summary>
        <div class="fields">
          <Field name="donk" label="Donk bets" placeholder="as bets" />
          <Field name="allin_spr" label="All-in at pots left" />
          <Field name="rake" label="Rake" placeholder="5%" />
          <Field name="rake_cap" label="Rake at most" />
        </div>
      </details>
    </>
  );
}

function answerText({ equity, ev_chips: ev, gain_chips: gain, unlocked_gain_chips: unlocked }) {
  return Object.values(SIDES).map((name, player) => ` ${name}: equity ${percent(equity[player])}, EV ${ev[player].toFixed(2)} ` +
    `chips, could gain ${gain[player].toFixed(2)}${unlocked ? ` (${unlocked[player].toFixed(2)} without locks)` : ""}.`).join("");
}
/* How far the solution is. */
function stateText({ done, stopping, stopped, plan, seconds, curve, answer }) {
  const last = curve.at(-1), time = `${seconds.toFixed(0)} s`;
  const far = last ? `: can be beaten by ${percent(last[1], 2)} of the pot after ${last[0]} iterations`
    : !done && seconds > COMPILED ? ": the first time, the program has to be compiled" : "";
  const doing = stopping ? "Stopping" : plan ? "Solving" : "Building the tree";
  const head = done ? `${stopped ? "Stopped after" : "Solved in"} ${time}` : `${doing}, ${time}`;
  return `${head}${far}.${answer ? answerText(answer) : ""}`;
}
/* Share of the way to the goal, on the scale of logarithms. */
function shareDone({ curve, to }) {
  if (!curve.length) return undefined;
  const [first, last] = [curve[0][1], curve.at(-1)[1]];
  return Math.min(1, Math.log(first / last) / Math.log(first / to) || 0);
}
function Solution() {
  const found = state.value, told = found ? [...found.said, ...(found.plan ? [found.plan.text] : [])] : [];
  return (
    <>
      {found && !found.done && <progress id="spot-progress" aria-label="Way to the goal" value={shareDone(found)} />}
      <p id="spot-plan" class="quiet">{told.map(sentence).join(" ")}</p>
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
