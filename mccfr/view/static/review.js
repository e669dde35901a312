/* A review of hands: its decisions, the costliest first; the grid beside is that of the one chosen. */
// biome-ignore lint/correctness/noUnusedVariables: view.js uses it
const Review = (() => {
  "use strict";
  const { button, drawnCard, drawnHand, element, percent } = Strategy;
  const byId = (id) => document.getElementById(id);
  const FILTERS = { street: "any street", player: "any player" };
  let page = null;   // what view.js lends
  let found = null;  // what /api/review says
  let at = "";       // place of the decision that is shown; "": the review is not

  const shown = () => at !== "";
  const here = () => found?.rows.find((one) => String(one.place) === at);
  /* Show the review beside a decision of it, or leave it. */
  async function show(place) {
    at = page.game?.reviewed ? place : "";
    byId("review").hidden = !shown();
    document.body.classList.toggle("reviewing", shown());
    byId("tab-review").setAttribute("aria-selected", shown());
    if (!shown()) return;
    if (!found) await read();
    draw();
  }
  async function read() {
    const which = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, byId("review-" + name).value]));
    found = await page.ask("/api/review", which);
    for (const [name, all] of Object.entries(FILTERS)) {
      byId("review-" + name).replaceChildren(element("option", all, { value: "" }),
        ...found[name + "s"].map((one) => element("option", one, { value: one })));
      byId("review-" + name).value = which[name];
    }
  }
  const big = (chips) => (chips / page.game.unit_chips).toFixed(2);
  function costs(one) {
    if (one.cost_chips < 0.005 * page.game.unit_chips) return "costs nothing";
    const wide = one.ci95_chips ? (one.ci95_chips[1] - one.ci95_chips[0]) / 2 : 0;
    return "costs " + (wide ? "about " + big(one.cost_chips) + " ± " : "") + page.money(wide || one.cost_chips);
  }
  function draw() {
    const { decisions, rows } = found;
    byId("review-said").textContent = found.title + ", " + found.hands.toLocaleString("en") + " hands: " +
      decisions.toLocaleString("en") + " decisions cost " + page.money(found.cost_chips) +
      (rows.length < decisions ? "; the costliest " + rows.length : "") + ".";
    byId("review-rows").replaceChildren(...rows.map((one) => {
      const made = button(null, one.where, () => go(one), { class: "review-row", "aria-current": String(one.place) === at, "data-place": one.place });
      made.append(element("b", big(one.cost_chips)), element("span", null, {}, ...drawnHand(one.hand).childNodes),
        element("span", null, { class: "cards" }, ...page.split(one.board).map(drawnCard)),
        element("small", one.player + ", " + one.street + ": " + one.did + ", best " + one.better));
      return made;
    }));
    const one = here();
    byId("review-told").hidden = !one;
    if (!one) return;
    byId("review-told").textContent = one.player + ", " + one.position + ", " + one.pot + " pot: " + one.did + " with " + one.hand +
      " (the strategy: " + percent(one.probability) + ") " + costs(one) + "; the best is " + one.better + "." +
      (one.taken_for ? " Taken for " + one.taken_for + "." : "") + (one.resolved ? " The rest of the hand was solved for it." : "") +
      " " + one.where + ".";
  }
  const go = (one) => { location.hash = one.link + "&review=" + one.place; };
  async function open() {
    try {
      if (!found) await read();
      if (found.rows.length) go(found.rows[0]);
    } catch (error) { page.problem(page.toldOf(error)); }
  }
  async function filter() { await read(); draw(); }
  /* The hand of the decision that is shown, where a spot is it. */
  function hand(spot) {
    const one = here();
    if (!shown() || !one || one.line !== spot.line || one.board !== (spot.board || "") || !spot.hands) return -1;
    const sorted = (text) => page.split(text).sort().join("");
    return spot.hands.names.findIndex((name) => sorted(name) === sorted(one.hand));
  }
  function begin(lent) {
    page = lent;
    byId("tab-review").addEventListener("click", open);
    for (const name of Object.keys(FILTERS)) byId("review-" + name).addEventListener("change", filter);
  }
  return { begin, hand, show, shown };
})();
