/* Ranges by name: the user's saved ranges, and those after preflop actions of the strategy. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { attempt, get, post } from "./requests.js";
import { base } from "./study.js";

const PATH = "/api/spots/ranges";
const saved = signal({});       // texts by name
const presets = signal([]);     // {name, text}
const failed = signal("");

const update = (request) => attempt(failed, async () => {
  const found = await request();
  saved.value = found.saved;
  presets.value = found.presets || presets.value;
});
export const readSaved = () => update(() => get(PATH, { of: base.value }));

/* A list that puts a range into a side's text, and fields that save this text under a name. */
export function SavedRanges({ side, text, onChoose }) {
  const [name, setName] = useState("");
  const choose = (event) => {
    const [kind, key] = event.target.value.split(/ (.*)/);
    onChoose(kind === "saved" ? saved.value[key] : presets.value[key].text);
    if (kind === "saved") setName(key);
    event.target.value = "";
  };
  return (
    <div class="row saved">
      <select aria-label="Put in a range" data-side={side} onChange={choose}>
        <option value="">Put in …</option>
        <optgroup label="Saved">
          {Object.keys(saved.value).map((key) => <option key={key} value={`saved ${key}`}>{key}</option>)}
        </optgroup>
        <optgroup label="Of the strategy">
          {presets.value.map((one, place) => <option key={one.name} value={`preset ${place}`}>{one.name}</option>)}
        </optgroup>
      </select>
      <input aria-label="Name of the range" placeholder="name" size="12" value={name}
        onInput={(event) => setName(event.target.value)} />
      <button type="button" disabled={!name.trim()} onClick={() => update(() => post(`${PATH}/save`, { name, text }))}>Save</button>
      {saved.value[name] !== undefined && (
        <button type="button" onClick={() => update(() => post(`${PATH}/delete`, { name }))}>Delete</button>
      )}
      {failed.value && <span class="wrong" role="alert">{failed.value}</span>}
    </div>
  );
}
