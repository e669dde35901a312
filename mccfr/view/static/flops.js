/* A line on flop after flop, drawn by Strategy.  Text is written as text, never as markup. */
(() => {
  "use strict";
  const { button, colours, drawGrid, drawnHand, element, percent } = Strategy;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const TEXTURES = ["suits", "pairs", "high card"], ROLES = { oop: "out of position", ip: "in position" };
  const colour = colours(data.actions.map((action) => ({ action })));
  const wanted = Object.fromEntries(TEXTURES.map((name) => [name, ""]));
  const sorted = { by: "share", down: true };
  let position = data.player ? "ip" : "oop";

  const named = (action) => data.names[data.actions.indexOf(action)];
  const number = (digits) => (value) => value === null ? "–" : value.toFixed(digits);
  /* Columns: key, head, and how a value is told. */
  const NUMBERS = [["share", "share", (value) => percent(value, 2)], ...data.actions.map((one) => [one, named(one), percent]),
    ...Object.keys(ROLES).flatMap((role) => [["equity_" + role, "equity " + role, percent],
      ["ev_" + role, "EV " + role, number(2)], ["eqr_" + role, "EQR " + role, number(3)]])];

  const there = () => data.flops.filter((row) => TEXTURES.every((name) => !wanted[name] || row[name] === wanted[name]))
    .sort((one, other) => {
      const [a, b] = [one, other].map((row) => row[sorted.by]), order = a > b ? 1 : a < b ? -1 : 0;
      return a === null || b === null ? (a === null) - (b === null) : sorted.down ? -order : order;
    });
  function mean(rows, key) {
    const role = key.startsWith("eqr_") && key.slice(4);  // a ratio of means
    if (role) {
      const equity = mean(rows, "equity_" + role);
      return equity >= 0.01 ? mean(rows, "ev_" + role) / (equity * data.pot) : null;
    }
    let sum = 0, weight = 0;
    for (const row of rows) if (row[key] !== null) { sum += row.share * row[key]; weight += row.share; }
    return weight ? sum / weight : null;
  }
  function svg(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }
  /* Each flop a column as wide as it is dealt, filled by how often each action is taken; a line for what is sorted by. */
  function drawPlot(rows) {
    const WIDTH = 1000, HEIGHT = 240, all = rows.reduce((sum, row) => sum + row.share, 0) || 1;
    const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "stack" });
    const edges = [0];
    for (const row of rows) edges.push(edges.at(-1) + (WIDTH * row.share) / all);
    let below = rows.map(() => 0);
    data.actions.forEach((action, place) => {
      const above = rows.map((row, flop) => below[flop] + row[action]);
      const step = (tops, flop) => [[edges[flop], tops[flop]], [edges[flop + 1], tops[flop]]];
      const points = [...rows.flatMap((_, flop) => step(above, flop)), ...rows.flatMap((_, flop) => step(below, flop)).reverse()];
      box.append(svg("polygon", { class: colour[place], points: points.map(([x, y]) => x.toFixed(2) + "," + (HEIGHT * (1 - y)).toFixed(2)).join(" ") }));
      below = above;
    });
    const values = rows.map((row) => row[sorted.by]).filter((value) => typeof value === "number");
    const least = Math.min(...values), span = Math.max(...values) - least || 1;
    if (values.length) {
      box.append(svg("polyline", { class: "line", points: rows.map((row, flop) => typeof row[sorted.by] !== "number" ? "" :
        ((edges[flop] + edges[flop + 1]) / 2).toFixed(2) + "," + (HEIGHT * (1 - (row[sorted.by] - least) / span)).toFixed(2)).join(" ") }));
    }
    byId("plot").replaceChildren(box);
    byId("legend").replaceChildren("Flops in the order of the table, as wide as they are dealt: ",
      ...data.actions.flatMap((one, place) => [element("i", null, { class: "key " + colour[place] }), named(one) + " "]),
      values.length ? "; the line: " + (NUMBERS.find(([key]) => key === sorted.by) || [0, sorted.by])[1] + " from " +
        Number(least.toPrecision(4)) + " to " + Number((least + span).toPrecision(4)) + "." : ".");
  }
  function head(text, key) {
    const made = element("th");
    if (key === sorted.by) made.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    made.append(button(text, "Sort by it", () => {
      Object.assign(sorted, key === sorted.by ? { down: !sorted.down } : { by: key, down: true });
      draw();
    }));
    return made;
  }
  function table(heads, rows) {
    return element("table", null, {}, element("thead", null, {}, element("tr", null, {}, ...heads)), element("tbody", null, {}, ...rows));
  }
  const within = (row, key, tell) => row[key + "_within"] ? " ± " + tell(row[key + "_within"]) : "";
  const told = (row) => NUMBERS.map(([key, , tell]) => element("td", tell(row[key]) + within(row, key, tell)));
  function draw() {
    const rows = there(), share = rows.reduce((sum, row) => sum + row.share, 0);
    byId("mean").textContent = rows.length + " flops, " + percent(share) + " of deals: " + NUMBERS.slice(1).map(([key, name, tell]) =>
      name + " " + tell(mean(rows, key))).join(", ");
    drawPlot(rows);
    byId("flops").replaceChildren(table([head("flop", "flop"), ...TEXTURES.map((name) => head(name, name)),
      ...NUMBERS.map(([key, name]) => head(name, key))], rows.map((row) => element("tr", null, {}, drawnHand(row.flop),
      ...TEXTURES.map((name) => element("td", row[name])), ...told(row)))));
  }
  function drawFilters() {
    byId("filters").replaceChildren(...TEXTURES.map((name) => {
      const kinds = data.textures.filter((row) => row.by === name).map((row) => row.texture);
      const choice = element("select", null, { "aria-label": name }, element("option", "any " + name, { value: "" }),
        ...kinds.map((kind) => element("option", kind, { value: kind })));
      choice.addEventListener("change", () => { wanted[name] = choice.value; draw(); });
      return choice;
    }));
    byId("textures").replaceChildren(table(["", ...NUMBERS.map(([, name]) => name)].map((name) => element("th", name)),
      data.textures.map((row) => element("tr", null, {}, element("td", row.texture), ...told(row)))));
  }
  function drawClasses() {
    const ranks = [..."AKQJT98765432"], found = new Map(data.classes.filter((row) => row.position === position).map((row) => [row.class, row]));
    const label = ranks.flatMap((row, down) => ranks.map((column, across) =>
      down === across ? row + row : down < across ? row + column + "s" : column + row + "o"));
    const size = (name) => found.get(name).share / (name.length === 2 ? 6 : name[2] === "s" ? 4 : 12);
    const most = Math.max(...[...found.keys()].map(size), 1e-300);
    drawGrid(byId("grid"), 13, label, label.map((name) => {
      const row = found.get(name);
      if (!row) return null;
      const acts = row[data.actions[0]] !== null;
      const title = (acts ? data.actions.map((one) => named(one) + " " + percent(row[one])).join(", ") + "; " : "") +
        "equity " + percent(row.equity) + ", EV " + row.ev.toFixed(2);
      return { shares: acts ? data.actions.map((one) => row[one]) : [1], colour: acts ? colour : ["range-fill"], height: size(name) / most, title };
    }), -1, () => {});
    byId("positions").replaceChildren(...Object.entries(ROLES).map(([key, name]) => button(name, "", () => {
      position = key;
      drawClasses();
    }, { role: "tab", "aria-selected": key === position })));
  }
  drawFilters();
  draw();
  drawClasses();
})();
