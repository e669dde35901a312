/* Locks of a spot in the form: fixed frequencies of a player's actions at a line. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { CLASSES } from "./cards.jsx";
import { Choice } from "./controls.jsx";
import { colours } from "./grid.jsx";
import { fields, painted, readHands, setField, tree } from "./form.js";
import { paintWeight, RangeEditor } from "./range_editor.jsx";
import { get, sentenceOf } from "./requests.js";

const EVERY_HAND = /^\d*\.?\d+\s*%$/;
const ANY_ACTION = [["f", "Fold"], ["c", "Check or call"], ["b", "Any bet or raise: 0 %"]];  // before a tree is known

export const lockLine = signal("");
const action = signal("f");

/* Parse locks into a map from lines to maps from actions to hands, or to a percentage of every hand. */
function parseLocks(text) {
  const found = new Map();
  for (const one of text.split("\n").filter((part) => part.includes("="))) {
    const cut = one.indexOf("="), at = one.slice(0, cut).trim(), actions = found.get(at) || new Map();
    for (const part of one.slice(cut + 1).split(";")) {
      const [, name, hands] = /^\s*(\S+)\s+(.*?)\s*$/.exec(part) || [];
      if (name) actions.set(name, hands);
    }
    found.set(at, actions);
  }
  return found;
}
const locksText = (locks) => [...locks].map(([at, actions]) =>
  `${at}=${[...actions].map((one) => one.join(" ")).join("; ")}`).join("\n");
const locksHere = () => parseLocks(fields.value.locks).get(lockLine.value.trim()) || new Map();

/* Lock the chosen action to hands; "" unlocks it, null unlocks all actions of the line. */
function lock(hands) {
  const all = parseLocks(fields.value.locks), actions = hands === null ? new Map() : new Map(locksHere());
  if (hands) actions.set(action.value, hands);
  else actions.delete(action.value);
  if (actions.size) all.set(lockLine.value.trim(), actions);
  else all.delete(lockLine.value.trim());
  setField("locks", locksText(all));
}

/* Return {actions, role, wrong}: the actions after the line, the acting player, and an error or "".
   Without a solved tree the actions are ANY_ACTION. */
function useActions() {
  const [found, setFound] = useState({ actions: ANY_ACTION, role: "", wrong: "" });
  const at = { of: tree.value, line: lockLine.value.trim(), board: fields.value.board.trim() };
  useEffect(() => {
    let still = true;
    async function read() {
      try {
        const there = await get("/api/spot", at);
        if (!still) return;
        const actions = there.actions.map((one) => [one.action, one.name]);
        setFound({ actions, role: there.role, wrong: "" });
        if (!actions.some(([name]) => name === action.value)) action.value = actions[0][0];
      } catch (error) { if (still) setFound({ actions: ANY_ACTION, role: "", wrong: sentenceOf(error) }); }
    }
    if (at.of !== null) read();
    return () => { still = false; };
  }, [at.of, at.line, at.board]);
  return found;
}
/* Return [found, setFound, every]: the server's reading of the hands locked to the chosen action, its setter, and whether
   they are a percentage of every hand. */
function useLocked(hands) {
  const [found, setFound] = useState(null);
  const every = EVERY_HAND.test(hands.trim());
  useEffect(() => {
    let still = true;
    if (every) setFound({ weights: CLASSES.map(() => Number.parseFloat(hands) / 100), note: "of every hand" });
    else readHands(hands).then((now) => { if (still) setFound((old) => ({ weights: old?.weights, ...now })); });
    return () => { still = false; };
  }, [hands]);
  return [found, setFound, every];
}

export function Locks({ open }) {
  const { actions, role, wrong } = useActions(), hands = locksHere().get(action.value) || "";
  const [found, setFound, every] = useLocked(hands);
  const more = [...locksHere().keys()].filter((one) => !actions.some(([name]) => name === one)).map((one) => [one, one]);
  async function lockPainted(classes, weight) {
    const now = await readHands(every ? "" : hands, classes, weight);
    if (now.wrong) setFound(now);
    else lock(now.text);
  }
  return (
    <details id="spot-locking" open={open || fields.value.locks !== ""}>
      <summary>Locks: fixed frequencies of a player's actions</summary>
      <div class="row">
        <label for="lock-line">After the line</label>
        <input id="lock-line" size="14" spellcheck={false} autoComplete="off" placeholder="the start" value={lockLine.value}
          onChange={(event) => { lockLine.value = event.target.value; }} />
        <span id="lock-who">{role || "Action"}:</span>
        <Choice id="lock-action" name="Action" value={action.value} choices={[...actions, ...more]} onChoose={(one) => { action.value = one; }} />
        <button id="lock-all" type="button" title="Lock the action with this probability for every hand: the weight to paint with"
          onClick={() => lock(`${Math.round(1e4 * paintWeight()) / 100}%`)}>by every hand</button>
        <button type="button" onClick={() => lock(null)}>Unlock</button>
      </div>
      {wrong && <p class="wrong" role="alert">{wrong}</p>}
      <div id="spot-lock-side">
        <RangeEditor side="lock" label="Hands that take the action" text={hands} found={found}
          colour={colours([{ action: action.value }])[0]} onType={() => {}} onRead={(event) => lock(event.target.value.trim())}
          onCell={(name, weight) => setFound(painted(found, name, weight))} onPainted={lockPainted} />
      </div>
      <label>All locks, one per line{" "}
        <textarea id="spot-locks" rows="2" spellcheck={false} placeholder="c=c 60%" value={fields.value.locks}
          onChange={(event) => setField("locks", event.target.value)} />
      </label>
      <p class="quiet">An action without a lock gets the rest of a locked hand's probability. Hands without a lock, and all other decisions, are solved.</p>
    </details>
  );
}
