"""Style and script of a report.  The script writes text as text only, never as markup, and loads nothing."""

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 18px; color: #1c2430; background: #fff;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 22px; margin: 0 0 2px; }
h2 { font-size: 16px; margin: 26px 0 8px; }
p { margin: 4px 0; }
.quiet { color: #5b6675; }
button, select { font: inherit; color: inherit; }
#line { display: flex; flex-wrap: wrap; gap: 4px; margin: 10px 0; align-items: center; }
#line button { border: 1px solid #c3cad4; background: #f4f6f9; border-radius: 4px; padding: 2px 8px; cursor: pointer; }
#line button[aria-current] { background: #1c2430; color: #fff; border-color: #1c2430; }
#strategy { display: grid; grid-template-columns: minmax(0, 620px) minmax(250px, 1fr); gap: 20px; align-items: start; }
@media (max-width: 900px) { #strategy { grid-template-columns: minmax(0, 1fr); } }
#grid { width: 100%; display: block; border: 1px solid #8a94a3; }
#grid text { font-size: 10px; font-weight: 600; fill: #10151c; pointer-events: none; }
#grid .none text { fill: #a3abb7; font-weight: 400; }
#grid g { cursor: pointer; }
#grid .chosen { fill: none; stroke: #10151c; stroke-width: 2; pointer-events: none; }
.action { display: grid; grid-template-columns: 14px 1fr auto; gap: 8px; align-items: center; width: 100%;
  margin: 3px 0; padding: 6px 8px; border: 1px solid #c3cad4; border-radius: 4px; background: #fff; text-align: left; }
button.action { cursor: pointer; }
button.action:hover { background: #f0f3f7; }
.action i, .bar i { display: block; height: 14px; }
.bar { display: flex; height: 14px; background: #e4e8ee; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 2px 10px 2px 0; text-align: right; white-space: nowrap; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
#hands { max-height: 330px; overflow: auto; }
#hands td .bar { width: 90px; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.curve { width: 100%; max-width: 640px; }
.curve text { font-size: 11px; fill: #414b59; }
.curve .rule { stroke: #dfe4ea; fill: none; }
.curve .line { fill: none; stroke: #0072b2; stroke-width: 2; }
.curve circle { fill: #0072b2; }
details { margin: 6px 0; }
summary { cursor: pointer; }
pre { background: #f4f6f9; padding: 10px; overflow: auto; font-size: 13px; }
"""

SCRIPT = """
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SIZE = 48, SVG = "http://www.w3.org/2000/svg", FOLD = "#5b8fc7", CALL = "#63b07a";
  const RAISES = ["#f2b56b", "#e8813f", "#d04f35", "#a32a2f", "#741a3a", "#4c1440", "#331040"];
  const byId = (id) => document.getElementById(id);
  let current = null, chosen = null;

  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const key in attributes || {}) made.setAttribute(key, attributes[key]);
    return made;
  }
  function shape(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function colours(view) {
    let raised = 0;
    return view.actions.map(function (one) {
      if (one.action === "f") return FOLD;
      if (one.action === "c") return CALL;
      return RAISES[Math.min(raised++, RAISES.length - 1)];
    });
  }
  const percent = (share) => (100 * share).toFixed(1) + " %";
  const amount = (chips) => chips.toLocaleString("en", { maximumFractionDigits: 2 });

  /* Hands of each cell with their reach, and the cell's strategy: the mean over hands, weighed by reach. */
  function cells(view) {
    const list = data.hands[view.board][view.player], count = view.actions.length;
    const unreached = new Set(view.u), made = {};
    list.forEach(function (hand, place) {
      const cell = data.cell[hand];
      const one = made[cell] || (made[cell] = { reach: 0, plain: new Array(count).fill(0),
        weighed: new Array(count).fill(0), hands: [] });
      const shares = view.p.slice(place * count, place * count + count).map((share) => share / data.scale);
      one.reach += view.r[place];
      shares.forEach(function (share, action) {
        one.plain[action] += share;
        one.weighed[action] += view.r[place] * share;
      });
      one.hands.push({ name: data.names[hand], reach: view.r[place], shares: shares, unreached: unreached.has(place) });
    });
    for (const cell in made) {
      const one = made[cell];
      one.shares = one.reach > 0 ? one.weighed.map((share) => share / one.reach)
        : one.plain.map((share) => share / one.hands.length);
      one.mean = one.reach / one.hands.length;
    }
    return made;
  }
  function bar(shares, colour) {
    const made = element("span", null, { class: "bar" });
    shares.forEach(function (share, action) {
      const part = element("i");
      part.style.width = 100 * share + "%";
      part.style.background = colour[action];
      made.append(part);
    });
    return made;
  }
  function drawGrid(view, made, colour) {
    const grid = byId("grid"), most = Math.max(...Object.values(made).map((one) => one.mean), 1e-300);
    grid.replaceChildren();
    grid.setAttribute("viewBox", "0 0 " + data.columns * SIZE + " " + data.rows * SIZE);
    data.label.forEach(function (label, cell) {
      const y = data.place[cell][0] * SIZE, x = data.place[cell][1] * SIZE, one = made[cell];
      const group = shape("g", { class: one ? "some" : "none" });
      group.append(shape("rect", { x: x, y: y, width: SIZE, height: SIZE, fill: "#f4f6f9", stroke: "#fff" }));
      if (one) {
        const opacity = one.mean > 0 ? 0.1 + 0.9 * Math.sqrt(one.mean / most) : 0.04;
        let from = x;
        one.shares.forEach(function (share, action) {
          group.append(shape("rect", { x: from, y: y + 1, width: share * SIZE, height: SIZE - 2, fill: colour[action],
            "fill-opacity": opacity }));
          from += share * SIZE;
        });
        const text = view.actions.map((action, place) => action.name + " " + percent(one.shares[place]));
        group.append(shape("title", {}, label + ", reach " + percent(one.mean) + ": " + text.join(", ")));
        group.addEventListener("mouseenter", () => showHands(view, made, cell, colour));
        group.addEventListener("click", () => showHands(view, made, cell, colour));
      }
      group.append(shape("text", { x: x + 4, y: y + 14 }, label));
      if (cell === chosen) group.append(shape("rect", { x: x + 1, y: y + 1, width: SIZE - 2, height: SIZE - 2,
        class: "chosen" }));
      grid.append(group);
    });
  }
  function showHands(view, made, cell, colour) {
    const one = made[cell], table = element("table");
    chosen = cell;
    byId("grid").querySelectorAll(".chosen").forEach((mark) => mark.remove());
    byId("grid").append(shape("rect", { x: data.place[cell][1] * SIZE + 1, y: data.place[cell][0] * SIZE + 1,
      width: SIZE - 2, height: SIZE - 2, class: "chosen" }));
    const head = element("tr");
    ["hand", "", "reach"].concat(view.actions.map((action) => action.name))
      .forEach((text) => head.append(element("th", text)));
    table.append(head);
    one.hands.forEach(function (hand) {
      const line = element("tr"), drawn = element("td");
      drawn.append(bar(hand.shares, colour));
      line.append(element("td", hand.name + (hand.unreached ? " (never reached: uniform)" : "")), drawn,
        element("td", percent(hand.reach)));
      hand.shares.forEach((share) => line.append(element("td", percent(share))));
      table.append(line);
    });
    byId("hands").replaceChildren(element("h2", data.label[cell]), table);
  }
  function totals(made, count) {
    const sum = new Array(count).fill(0);
    let reach = 0;
    for (const cell in made) {
      reach += made[cell].reach;
      made[cell].weighed.forEach((share, action) => { sum[action] += share; });
    }
    return reach > 0 ? sum.map((share) => share / reach) : null;
  }
  /* The decisions that an action leads to: one, or one for each board shown where cards are dealt. */
  function following(view, next) {
    const same = next + "." + view.board;
    if (data.views[same]) return [same];
    return data.boards.map((board, number) => [board, next + "." + number])
      .filter((pair) => pair[0].parent === view.board && data.views[pair[1]]).map((pair) => pair[1]);
  }
  function drawActions(view, made, colour) {
    const box = byId("actions"), shares = totals(made, view.actions.length);
    box.replaceChildren();
    view.actions.forEach(function (action, place) {
      const open = action.next < 0 ? [] : following(view, action.next);
      const line = element(open.length ? "button" : "div", null, { class: "action" });
      const mark = element("i");
      mark.style.background = colour[place];
      let text = action.name;
      if (action.next < 0) text += " (the betting ends)";
      else if (!open.length) text += " (not in this file: mccfr query)";
      line.append(mark, element("span", text), element("span", shares ? percent(shares[place]) : "–"));
      if (open.length) line.addEventListener("click", () => show(open[0]));
      box.append(line);
    });
  }
  /* The decisions above, first to last, found by the line each view was reached by. */
  function above(key) {
    const path = [key];
    for (let at = key; data.above[at] !== undefined; at = data.above[at]) path.unshift(data.above[at]);
    return path;
  }
  function drawLine(key) {
    const box = byId("line"), path = above(key);
    box.replaceChildren();
    path.forEach(function (one, place) {
      const view = data.views[one];
      let text = "start";
      if (place) {
        const before = data.views[path[place - 1]], node = Number(one.split(".")[0]);
        text = before.actions.find((action) => action.next === node).name;
        if (before.board !== view.board) text += " · " + data.boards[view.board].street;
      }
      const step = element("button", text, one === key ? { "aria-current": "step" } : {});
      step.addEventListener("click", () => show(one));
      box.append(step);
    });
  }
  function drawBoards(key) {
    const box = byId("boards"), view = data.views[key], node = key.split(".")[0];
    const parent = data.boards[view.board].parent;
    const others = data.boards.map((board, number) => number)
      .filter((number) => data.boards[number].parent === parent && data.views[node + "." + number]);
    box.replaceChildren();
    box.append(element("span", data.boards[view.board].street + (others.length > 1 ? " " : " " +
      data.boards[view.board].name)));
    if (others.length < 2) return;
    const choice = element("select", null, { "aria-label": "board" });
    others.forEach(function (number) {
      const option = element("option", data.boards[number].name, { value: number });
      option.selected = number === view.board;
      choice.append(option);
    });
    choice.addEventListener("change", () => show(node + "." + choice.value));
    box.append(choice);
  }
  function show(key) {
    current = key;
    const view = data.views[key], made = cells(view), colour = colours(view);
    byId("who").textContent = data.players[view.player] + " to act, pot " + amount(view.pot) + " chips, line " +
      (view.line ? view.line : "(empty)");
    drawBoards(key);
    drawLine(key);
    drawActions(view, made, colour);
    drawGrid(view, made, colour);
    if (chosen !== null && made[chosen]) showHands(view, made, chosen, colour);
    else byId("hands").replaceChildren(element("p", "Point at a cell for its hands.", { class: "quiet" }));
    if (location.hash.slice(1) !== key) history.replaceState(null, "", "#" + key);
  }
  window.addEventListener("hashchange", function () {
    const key = location.hash.slice(1);
    if (data.views[key] && key !== current) show(key);
  });
  const wanted = location.hash.slice(1);
  show(data.views[wanted] ? wanted : data.first);
})();
"""
