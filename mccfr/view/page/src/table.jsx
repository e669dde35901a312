/* Tables that sort by a column. */
import { useState } from "preact/hooks";

/* Return the rows sorted by value(row); rows with null come last.  down: descending */
export function sortedRows(rows, value, down) {
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return (a > b ? 1 : a < b ? -1 : 0) * (down ? -1 : 1);
  });
}

function Head({ column, sorting, onSort }) {
  const { head, title } = column;
  if (!column.value) return <th title={title}>{head || <span class="unseen">frequencies</span>}</th>;
  const order = sorting.by === head ? (sorting.down ? "descending" : "ascending") : undefined;
  return (
    <th aria-sort={order}>
      <button type="button" title={title || "Sort by this column"} onClick={() => onSort(head)}>{head}</button>
    </th>
  );
}

/* columns: {head, cell(row), value(row) if it sorts, title, class}
   row(one): attributes of a row's <tr>, with its key */
export function SortableTable({ columns, rows, sorting, onSort, row }) {
  return (
    <table>
      <thead>
        <tr>{columns.map((column) => <Head key={column.head} {...{ column, sorting, onSort }} />)}</tr>
      </thead>
      <tbody>
        {rows.map((one) => (
          <tr {...row(one)}>
            {columns.map((column) => (
              <td key={column.head} class={column.class} data-head={column.head}>{column.cell(one)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/* A table that keeps its own sorting.  first: {by, down} at first; without it the rows keep their order */
export function SortedTable({ columns, rows, first = {}, row }) {
  const [sorting, setSorting] = useState(first);
  const by = columns.find(({ head }) => head === sorting.by);
  const onSort = (head) => setSorting({ by: head, down: head !== sorting.by || !sorting.down });
  return <SortableTable {...{ columns, sorting, onSort, row }} rows={by ? sortedRows(rows, by.value, sorting.down) : rows} />;
}

/* Return a column of figures.  format(figure): its text */
export const figure = (head, value, format) => ({ head, value, cell: (row) => format(value(row)) });
