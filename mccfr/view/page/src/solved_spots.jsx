/* The table of solved spots, each of which is a run, with buttons to open, compare, change and delete. */
import { signal } from "@preact/signals";
import { decisionAddress, goTo, spotAddress } from "./address.js";
import { Card, cardsOf } from "./cards.jsx";
import { percent, whole } from "./figures.js";
import { attempt, get, post } from "./requests.js";
import { figure, SortedTable } from "./table.jsx";

const spots = signal([]);
const failed = signal("");
const marked = signal("");  // the run that was chosen first for a comparison, or ""

export const readSpots = () => attempt(failed, async () => { spots.value = (await get("/api/spots/solved")).spots; });
function compare(run) {
  const first = marked.value;
  marked.value = first ? "" : run;
  if (first) goTo(decisionAddress({ line: "", beside: run, of: first }));
}
function remove(run) {
  if (!window.confirm(`Delete ${run} with all its files?`)) return;
  attempt(failed, async () => { spots.value = (await post("/api/spots/delete", { run })).spots; });
}

function Tools({ run, asked }) {
  const waits = marked.value === run;
  return (
    <>
      <button type="button" onClick={() => goTo(decisionAddress({ line: "", of: run }))}>Open</button>{" "}
      <button type="button" disabled={waits} title="Compare with another spot: choose it next" onClick={() => compare(run)}>
        {waits ? "with …" : marked.value ? "Compare with this" : "Compare"}
      </button>{" "}
      <button type="button" title="Fill in the form with the fields of this spot" onClick={() => goTo(spotAddress(asked))}>Change</button>{" "}
      <button type="button" aria-label={`Delete ${run}`} onClick={() => remove(run)}>Delete</button>
    </>
  );
}
const COLUMNS = [
  { head: "solved", value: (row) => row.unix_seconds, cell: (row) => new Date(1000 * row.unix_seconds).toLocaleString("sv").slice(0, 16) },
  { head: "board", value: (row) => row.asked.board, cell: (row) => cardsOf(row.asked.board).map((name) => <Card key={name} name={name} />) },
  figure("pot", (row) => Number(row.asked.pot), whole),
  figure("behind", (row) => Number(row.asked.stack), whole),
  figure("exploitability, of the pot", (row) => row.gap_pot, (share) => percent(share, 2)),
  figure("iterations", (row) => row.iterations, whole),
  { head: "tools", cell: (row) => <Tools run={row.run} asked={row.asked} /> },
];

export function SolvedSpots() {
  if (!spots.value.length && !failed.value) return null;
  return (
    <section id="solved-spots" aria-label="Solved spots">
      <h2>Solved spots</h2>
      {failed.value && <p class="problem" role="alert">{failed.value}</p>}
      <div class="scrolling" tabIndex="0">
        <SortedTable columns={COLUMNS} rows={spots.value} first={{ by: "solved", down: true }}
          row={({ run }) => ({ key: run, "data-run": run, title: run })} />
      </div>
    </section>
  );
}
