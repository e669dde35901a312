/* An editor of a range, which the user types as text or paints on the grid. */
import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { CLASSES } from "./cards.jsx";
import { combos, percent } from "./figures.js";
import { HandGrid } from "./grid.jsx";

const PRESETS = [100, 75, 50, 25, 0];
export const weightText = signal("100");  // in percent

export const paintWeight = () => Math.min(1, Math.max(0, Number(weightText.value) / 100 || 0));

export function PaintWeight() {
  return (
    <div id="spot-paint" class="row">
      <label for="spot-weight">Paint with</label>
      <input id="spot-weight" inputMode="numeric" size="3" value={weightText.value}
        onInput={(event) => { weightText.value = event.target.value; }} /> %
      {PRESETS.map((share) => (
        <button key={share} type="button" data-weight={share} onClick={() => { weightText.value = String(share); }}>{share} %</button>
      ))}
    </div>
  );
}

/* side: name of the field; found: the server's reading of its text, {weights, combos} or {wrong}; `note` replaces the combos
   onType(text): after each change of the text; onRead(event): when the user leaves the changed text
   onCell(class, weight): when a cell is painted; onPainted(classes, weight): when a stroke ends */
export function RangeEditor({ side, label, text, found, colour = "range-fill", onType, onRead, onCell, onPainted, children }) {
  const stroke = useRef(null);  // {weight, classes} while the mouse is down
  const weightOf = (name) => found?.weights?.[CLASSES.indexOf(name)] || 0;
  /* The weight that a stroke from this cell paints: 0 if the cell has the weight to paint with already. */
  const newWeight = (name) => (Math.abs(weightOf(name) - paintWeight()) < 1e-3 ? 0 : paintWeight());
  const classAt = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest(`#spot-grid-${side} .cell`)?.dataset.class;
  function over(event) {
    const name = stroke.current && classAt(event);
    if (!name || stroke.current.classes.has(name)) return;
    stroke.current.classes.add(name);
    onCell(name, stroke.current.weight);
  }
  function begin(event) {
    const name = classAt(event);
    if (!name) return;
    event.preventDefault();
    stroke.current = { weight: newWeight(name), classes: new Set() };
    event.currentTarget.setPointerCapture(event.pointerId);
    over(event);
  }
  function end() {
    if (!stroke.current) return;
    const { weight, classes } = stroke.current;
    stroke.current = null;
    onPainted([...classes], weight);
  }
  /* Paint by Enter or Space, whose click event has detail 0; the pointer handlers paint for the mouse. */
  const byKey = (cell, event) => { if (event.detail === 0) onPainted([CLASSES[cell]], newWeight(CLASSES[cell])); };
  const cells = CLASSES.map((name) => ({ shares: [1], colour: [colour], height: weightOf(name), title: percent(weightOf(name), 0) }));
  return (
    <div class="panel">
      <div class="row">
        <label for={`spot-${side}`}>{label}</label>
        <span id={`spot-told-${side}`} class={found?.wrong ? "wrong" : "quiet"}>
          {found && (found.wrong || found.note || combos(found.combos))}
        </span>
      </div>
      <HandGrid id={`spot-grid-${side}`} name={`${label}: paint`} columns={13} labels={CLASSES} cells={cells} onChoose={byKey}
        onPointerDown={begin} onPointerMove={over} onPointerUp={end} onPointerCancel={end} />
      <textarea id={`spot-${side}`} rows="3" spellcheck={false} placeholder="QQ+,A5s-A2s:0.5,AhKh" value={text}
        aria-invalid={Boolean(found?.wrong)} onInput={(event) => onType(event.target.value)} onChange={onRead} />
      {children}
    </div>
  );
}
