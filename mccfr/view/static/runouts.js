/* What each card that may come next changes, once it is one: the strategy, equity and EV of the player to act on it.
   Cards are asked for one after the other, as spots are. */
// biome-ignore lint/correctness/noUnusedVariables: view.js uses it
const RunOuts = (() => {
  "use strict";
  const { bar, colours, drawnCard, element, percent } = Strategy;
  const byId = (id) => document.getElementById(id);
  const STEP = 4;                         // cards between two pictures
  let page = null;                        // what view.js lends
  let rows = [];                          // of each card {card, spot, equity, ev}
  let sorted = { by: "card", down: false };

  const chips = (value) => (value / page.game.unit_chips).toFixed(2);
  /* Ask for every card beside a spot that lacks one, as long as `still` is true. */
  async function read(spot, pick, still) {
    rows = [];
    const board = page.split(spot.board || ""), last = spot.street === page.game.streets.length - 1;
    draw(spot, pick);
    for (const card of page.game.deck.filter((name) => !board.includes(name)).reverse()) {
      const at = { line: spot.line, board: board.join("") + card };
      const [there, equity, values] = await Promise.all([page.ask("/api/spot", at), page.ask("/api/equity", at),
        last ? page.ask("/api/values", at) : null]);
      if (!still()) return;
      const mean = (found) => found?.mean ? found.mean[spot.player] : null;
      rows.push({ card, spot: there, equity: mean(equity), ev: mean(values) });
      if (rows.length % STEP === 0) draw(spot, pick);
    }
    draw(spot, pick);
  }
  /* What the table's heads say, what they sort by, and how that is told. */
  function columns(spot) {
    const pot = spot.pot_chips, found = [{ text: "card", value: (one) => -page.game.deck.indexOf(one.card) }, { text: "" }];
    found.push(...spot.actions.map((action, place) => ({ text: action.name, told: percent,
      value: (one) => one.spot.frequencies && one.spot.frequencies[place] })));
    found.push({ text: page.game.square ? "combos" : "hands", value: (one) => one.spot.ranges[spot.player].combos, told: (value) => value.toFixed(1) },
      { text: "equity", value: (one) => one.equity, told: percent });
    if (spot.street === page.game.streets.length - 1) {
      found.push({ text: "EV", value: (one) => one.ev, told: chips },
        { text: "EQR", value: (one) => one.ev === null || !(one.equity >= 0.01) ? null : one.ev / (one.equity * pot), told: (value) => percent(value, 0) });
    }
    return found;
  }
  function draw(spot, pick) {
    const all = columns(spot), colour = colours(spot.actions), by = all.find((one) => one.text === sorted.by) || all[0];
    const value = (one) => by.value(one) ?? -Infinity;
    rows.sort((one, other) => (value(one) - value(other)) * (sorted.down ? -1 : 1));
    const heads = all.map((one) => {
      const head = element("th");
      if (one === by) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      if (one.value) head.append(Strategy.button(one.text, "Sort by it", () => {
        sorted = { by: one.text, down: sorted.by !== one.text || !sorted.down };
        draw(spot, pick);
      }));
      return head;
    });
    const body = rows.map((row) => {
      const made = element("tr", null, { class: "card-row", "data-row": row.card }), cells = all.map((one) => {
        const found = one.told && one.value(row);
        const cell = element("td", one.told ? (found === null ? "–" : one.told(found)) : null, { "data-head": one.text });
        if (one === all[0]) cell.append(drawnCard(row.card));
        if (one === all[1] && row.spot.frequencies) cell.append(bar(row.spot.frequencies, colour));
        return cell;
      });
      cells[0].className = "hand";
      made.append(...cells);
      made.addEventListener("click", () => pick(row.card));
      return made;
    });
    byId("hands").replaceChildren(element("table", null, {}, element("thead", null, {}, element("tr", null, {}, ...heads)),
      element("tbody", null, {}, ...body)));
    byId("hands-title").textContent = page.game.streets[spot.street].name + " cards";
    byId("listed").textContent = rows.length + " cards, " + spot.role + " to act";
    for (const { card, spot: there } of rows) {
      const key = document.querySelector(`#picker-cards [data-card="${card}"]`);
      if (key && there.frequencies && !key.querySelector(".bar")) key.append(bar(there.frequencies, colour));
    }
  }
  function begin(lent) { page = lent; }
  return { begin, read };
})();
