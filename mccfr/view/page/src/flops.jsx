/* The page of `mccfr report`: one betting line on many flops.  The page contains its data as JSON. */
import { signal } from "@preact/signals";
import { render } from "preact";
import { CLASSES, HandText } from "./cards.jsx";
import { Choice, Toggles } from "./controls.jsx";
import { mean, percent, realised } from "./figures.js";
import { colours, HandGrid } from "./grid.jsx";
import { SortableTable, sortedRows } from "./table.jsx";
import "./strategy.css";
import "./report.css";

const data = JSON.parse(document.getElementById("data").textContent);
const TEXTURES = ["suits", "pairs", "high card"], ROLES = { oop: "out of position", ip: "in position" };
const WIDTH = 1000, HEIGHT = 240;  // of the plot, in units of its viewBox
const colour = colours(data.actions.map((action) => ({ action })));
const wanted = signal(Object.fromEntries(TEXTURES.map((name) => [name, ""])));
const sorting = signal({ by: "share", down: true });
const position = signal(data.player ? "ip" : "oop");

const nameOf = (action) => data.names[data.actions.indexOf(action)];
const fixed = (digits) => (value) => (value === null ? "–" : value.toFixed(digits));
const within = (row, key, format) => (row[`${key}_within`] ? ` ± ${format(row[`${key}_within`])}` : "");
const figure = (key, head, format) => ({ key, head, format, value: (row) => row[key], cell: (row) => format(row[key]) + within(row, key, format) });
const FIGURES = [
  figure("share", "share", (value) => percent(value, 2)),
  ...data.actions.map((one) => figure(one, nameOf(one), percent)),
  ...Object.keys(ROLES).flatMap((role) => [figure(`equity_${role}`, `equity ${role}`, percent),
    figure(`ev_${role}`, `EV ${role}`, fixed(2)), figure(`eqr_${role}`, `EQR ${role}`, fixed(3))]),
];
const TEXTS = ["flop", ...TEXTURES].map((name) => ({
  head: name,
  value: (row) => row[name],
  cell: (row) => (name === "flop" ? <HandText name={row.flop} /> : row[name]),
  class: name === "flop" ? "hand" : undefined,
}));
const COLUMNS = [...TEXTS, ...FIGURES];
const sortedBy = () => COLUMNS.find((one) => one.head === sorting.value.by);

/* Return the flops of the chosen textures, sorted. */
function chosenFlops() {
  const passed = data.flops.filter((row) => TEXTURES.every((name) => !wanted.value[name] || row[name] === wanted.value[name]));
  return sortedRows(passed, sortedBy().value, sorting.value.down);
}
/* Return a figure's mean over flops, weighted by share; EQR is the ratio of the means. */
function meanOf(rows, key) {
  const role = key.slice(4);  // of a key that begins with eqr_
  return key.startsWith("eqr_") ? realised(meanOf(rows, `equity_${role}`), meanOf(rows, `ev_${role}`), data.pot)
    : mean(rows.keys(), rows.map((row) => row.share), (place) => rows[place][key]);
}

const points = (pairs) => pairs.map(([x, y]) => `${x.toFixed(2)},${(HEIGHT * (1 - y)).toFixed(2)}`).join(" ");
/* A plot with a column for each flop, as wide as its share, filled by the frequencies of the actions.  A line shows the
   figure by which the table is sorted. */
function Plot({ rows }) {
  const all = rows.reduce((sum, row) => sum + row.share, 0) || 1, edges = [0];
  for (const row of rows) edges.push(edges.at(-1) + (WIDTH * row.share) / all);
  const sides = (height, flop) => [[edges[flop], height], [edges[flop + 1], height]];
  let below = rows.map(() => 0);
  const areas = data.actions.map((action, place) => {
    const above = rows.map((row, flop) => below[flop] + row[action]);
    const outline = [...above.flatMap(sides), ...below.flatMap(sides).reverse()];
    below = above;
    return <polygon key={action} class={colour[place]} points={points(outline)} />;
  });
  const by = sortedBy(), known = rows.map((row, flop) => [(edges[flop] + edges[flop + 1]) / 2, by.value(row)])
    .filter(([, value]) => typeof value === "number");
  const least = Math.min(...known.map(([, value]) => value)), most = Math.max(...known.map(([, value]) => value));
  const line = points(known.map(([x, value]) => [x, (value - least) / (most - least || 1)]));
  const range = known.length ? `; line: ${by.head} from ${Number(least.toPrecision(4))} to ${Number(most.toPrecision(4))}.` : ".";
  return (
    <>
      <svg id="plot" class="stack" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="Frequencies by flop">
        {areas}{known.length > 0 && <polyline class="line" points={line} />}
      </svg>
      <p class="quiet">
        One column per flop, in the order of the table, as wide as the flop's share:{" "}
        {data.actions.map((one, place) => <span key={one}><i class={`key ${colour[place]}`} />{nameOf(one)} </span>)}{range}
      </p>
    </>
  );
}

function Filters() {
  return (
    <p>
      {TEXTURES.map((name) => (
        <Choice key={name} name={name} value={wanted.value[name]} none={`any ${name}`}
          choices={data.textures.filter((row) => row.by === name).map(({ texture }) => texture)}
          onChoose={(texture) => { wanted.value = { ...wanted.value, [name]: texture }; }} />
      ))}
    </p>
  );
}
function Flops() {
  const rows = chosenFlops(), share = rows.reduce((sum, row) => sum + row.share, 0);
  const sortBy = (head) => { sorting.value = { by: head, down: head === sorting.value.by ? !sorting.value.down : true }; };
  return (
    <>
      <p id="mean">
        {rows.length} flops, {percent(share)} of deals:{" "}
        {FIGURES.slice(1).map(({ key, head, format }) => `${head} ${format(meanOf(rows, key))}`).join(", ")}
      </p>
      <Plot rows={rows} />
      <h2>Flops</h2>
      <div id="flops" tabIndex="0">
        <SortableTable columns={COLUMNS} rows={rows} sorting={sorting.value} onSort={sortBy} row={({ flop }) => ({ key: flop })} />
      </div>
    </>
  );
}
function Textures() {
  const columns = [{ head: "texture", cell: (row) => row.texture }, ...FIGURES].map((one) => ({ ...one, value: undefined }));
  return (
    <div id="textures" tabIndex="0">
      <SortableTable columns={columns} rows={data.textures} sorting={{}} row={({ by, texture }) => ({ key: `${by} ${texture}` })} />
    </div>
  );
}
function Classes() {
  const found = new Map(data.classes.filter((row) => row.position === position.value).map((row) => [row.class, row]));
  const size = (name) => found.get(name).share / (name.length === 2 ? 6 : name[2] === "s" ? 4 : 12);
  const most = Math.max(...[...found.keys()].map(size), 1e-300);
  const cells = CLASSES.map((name) => {
    const row = found.get(name);
    if (!row) return null;
    const acts = row[data.actions[0]] !== null, shares = data.actions.map((one) => row[one]);
    const mix = acts ? `${data.actions.map((one, place) => `${nameOf(one)} ${percent(shares[place])}`).join(", ")}; ` : "";
    const title = `${mix}equity ${percent(row.equity)}, EV ${row.ev.toFixed(2)}`;
    return { shares: acts ? shares : [1], colour: acts ? colour : ["range-fill"], height: size(name) / most, title };
  });
  return (
    <>
      <div class="row">
        <h2>Classes of hands</h2>
        <Toggles name="Position" value={position.value} choices={Object.entries(ROLES)} onChoose={(role) => { position.value = role; }} />
      </div>
      <HandGrid id="grid" name="Classes of hands" columns={13} labels={CLASSES} cells={cells} />
    </>
  );
}

render(<><Filters /><Flops /><h2>Textures</h2><Textures /><Classes /></>, document.getElementById("report"));
