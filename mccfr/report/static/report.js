/* A report's page: decisions of one file, drawn by Strategy.  Text is written as text, never as markup. */
(() => {
  "use strict";
  const { bar, button, colours, drawGrid, drawnHand, element, percent } = Strategy;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  let current = null, chosen = null;

  const amount = (chips) => chips.toLocaleString("en", { maximumFractionDigits: 2 });

  /* Hands of each cell with their reach, and the cell's strategy: the mean over hands, weighed by reach. */
  function cells(view) {
    const list = data.hands[view.board][view.player], count = view.actions.length;
    const unreached = new Set(view.u), locked = new Set(view.k || []), made = {};
    list.forEach((hand, place) => {
      const cell = data.cell[hand];
      if (!made[cell]) {
        made[cell] = { reach: 0, plain: new Array(count).fill(0), weighed: new Array(count).fill(0), hands: [] };
      }
      const one = made[cell];
      const shares = view.p.slice(place * count, place * count + count).map((share) => share / data.scale);
      one.reach += view.r[place];
      shares.forEach((share, action) => {
        one.plain[action] += share;
        one.weighed[action] += view.r[place] * share;
      });
      one.hands.push({
        name: data.names[hand], reach: view.r[place], shares: shares,
        unreached: unreached.has(place), locked: locked.has(place),
      });
    });
    for (const cell in made) {
      const one = made[cell];
      one.shares = one.reach > 0 ? one.weighed.map((share) => share / one.reach)
        : one.plain.map((share) => share / one.hands.length);
      one.mean = one.reach / one.hands.length;
    }
    return made;
  }
  function drawCells(view, made, colour) {
    const most = Math.max(...Object.values(made).map((one) => one.mean), 1e-300);
    const drawn = data.label.map((_, cell) => {
      const one = made[cell];
      if (!one) return null;
      const text = view.actions.map((action, place) => action.name + " " + percent(one.shares[place])).join(", ");
      return { shares: one.shares, colour, height: one.mean / most, title: "reach " + percent(one.mean) + ": " + text };
    });
    drawGrid(byId("grid"), data.columns, data.label, drawn, chosen, (cell) => {
      chosen = cell;
      drawCells(view, made, colour);
      showHands(view, made, colour);
    });
  }
  function showHands(view, made, colour) {
    const one = made[chosen], body = element("tbody"), head = element("tr");
    if (!one) {
      byId("hands").replaceChildren(element("p", "Choose a cell for its hands.", { class: "quiet" }));
      return;
    }
    ["hand", "", "reach"].concat(view.actions.map((action) => action.name))
      .forEach((text) => { head.append(element("th", text)); });
    one.hands.forEach((hand) => {
      const line = element("tr"), name = drawnHand(hand.name);
      if (hand.unreached) name.append(element("small", " never reached", { class: "quiet", title: "so it plays uniformly" }));
      if (hand.locked) name.append(element("small", " locked", { class: "quiet", title: "given, not learnt" }));
      line.append(name, element("td", null, {}, bar(hand.shares, colour)), element("td", percent(hand.reach)),
        ...hand.shares.map((share) => element("td", percent(share))));
      body.append(line);
    });
    byId("hands").replaceChildren(element("h2", data.label[chosen]),
      element("table", null, {}, element("thead", null, {}, head), body));
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
    view.actions.forEach((action, place) => {
      const open = action.next < 0 ? [] : following(view, action.next);
      const line = open.length ? button(null, "", () => show(open[0]), { class: "action" })
        : element("div", null, { class: "action" });
      let text = action.name;
      if (action.next < 0) text += " (the betting ends)";
      else if (!open.length) text += " (not in this file: mccfr query)";
      line.append(element("i", null, { class: colour[place] }), element("span", text),
        element("span", shares ? percent(shares[place]) : "–", { class: "share" }));
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
    path.forEach((one, place) => {
      const view = data.views[one];
      let text = "start";
      if (place) {
        const before = data.views[path[place - 1]], node = Number(one.split(".")[0]);
        text = before.actions.find((action) => action.next === node).name;
        if (before.board !== view.board) text += " · " + data.boards[view.board].street;
      }
      box.append(button(text, "", () => show(one), one === key ? { "aria-current": "step" } : {}));
    });
  }
  function drawBoards(key) {
    const box = byId("boards"), view = data.views[key], node = key.split(".")[0];
    const parent = data.boards[view.board].parent;
    const others = data.boards.map((_, number) => number)
      .filter((number) => data.boards[number].parent === parent && data.views[node + "." + number]);
    box.replaceChildren();
    box.append(element("span", data.boards[view.board].street + (others.length > 1 ? " " : " " +
      data.boards[view.board].name)));
    if (others.length < 2) return;
    const choice = element("select", null, { "aria-label": "board" });
    others.forEach((number) => {
      const option = element("option", data.boards[number].name, { value: number });
      option.selected = number === view.board;
      choice.append(option);
    });
    choice.addEventListener("change", () => show(node + "." + choice.value));
    box.append(choice);
  }
  function show(key) {
    current = key;
    const view = data.views[key], made = cells(view), colour = colours(view.actions);
    byId("who").textContent = data.players[view.player] + " to act, pot " + amount(view.pot) + " chips, line " +
      (view.line ? view.line : "(empty)");
    drawBoards(key);
    drawLine(key);
    drawActions(view, made, colour);
    drawCells(view, made, colour);
    showHands(view, made, colour);
    if (location.hash.slice(1) !== key) history.replaceState(null, "", "#" + key);
  }
  window.addEventListener("hashchange", () => {
    const key = location.hash.slice(1);
    if (data.views[key] && key !== current) show(key);
  });
  const wanted = location.hash.slice(1);
  show(data.views[wanted] ? wanted : data.first);
})();
