/* Preflop charts by position: first in, or facing an opening raise while all other players fold. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { decisionAddress, goTo, route } from "./address.js";
import { Legend } from "./chart.jsx";
import { Choice } from "./controls.jsx";
import { percent } from "./figures.js";
import { Bar, colours } from "./grid.jsx";
import { attempt } from "./requests.js";
import { ask, base, game, openStrategy } from "./study.js";

const openings = signal([]);   // decisions first in
const shown = signal([]);      // decisions of the charts that are shown
const failed = signal("");

/* A decision's grid as an image, which links to the decision. */
function SmallGrid({ role, line, actions, frequencies, probabilities }) {
  const { columns, label } = game.value.grid, colour = colours(actions);
  const texts = (shares) => actions.map(({ name }, place) => `${name} ${percent(shares?.[place])}`);
  return (
    <a class="position" href={decisionAddress({ line, of: base.value })}>
      <h2>{role}</h2>
      <div class="grid" role="img" aria-label={`${role}: ${texts(frequencies).join()}`} style={{ gridTemplateColumns: `repeat(${columns}, 1fr)` }}>
        {probabilities.map((shares, cell) => <Bar key={label[cell]} title={`${label[cell]}: ${texts(shares).join()}`} {...{ shares, colour }} />)}
      </div>
      <Legend keys={texts(frequencies).map((text, place) => [colour[place], text])} />
    </a>
  );
}

async function read({ line }) {
  await openStrategy(base.value);
  document.title = `Positions · ${game.value.title}`;
  openings.value = (await ask("/api/chart", {})).entries;
  shown.value = line ? (await ask("/api/chart", { line })).entries : openings.value;
}
export function Positions() {
  const at = route.value;
  useEffect(() => { attempt(failed, () => read(at)); }, [at]);
  const raises = openings.value.flatMap(({ role, actions }) => actions.filter(({ kind, ends }) => kind === "raise" && !ends)
    .map(({ line, name }) => [line, `${role}: ${name}`]));
  return (
    <section id="positions" aria-label="Charts by position">
      {failed.value && <p class="problem" role="alert">{failed.value}</p>}
      <p>
        <Choice id="opener" label="Facing" value={at.line} none="no raise: first in" choices={raises}
          onChoose={(line) => goTo(`#positions${line && `&line=${line}`}`)} />
        <span class="quiet">All other players fold. Click a chart to open its decision.</span>
      </p>
      <div id="charts">{shown.value.map((entry) => <SmallGrid key={entry.line} {...entry} />)}</div>
    </section>
  );
}
