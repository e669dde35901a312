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
  const blinds = (count) => count.toFixed(2) + " BB";
  /* The cost in words; an estimate whose interval contains 0 is no cost. */
  function costs(one) {
    if (Math.abs(one.shown_bb) < 0.005) return "costs nothing" + (one.ci95_bb ? " that can be told from 0 (" + interval(one) + ")" : "");
    const money = one.tournament ? "" : " (" + one.currency + one.cost.toFixed(2) + ")";
    return "costs " + (one.ci95_bb ? "about " : "") + blinds(one.shown_bb) + money + (one.ci95_bb ? ", " + interval(one) : "");
  }
  const interval = (one) => "95 %: " + one.ci95_bb.map((end) => end.toFixed(2)).join(" to ") + " BB";
  function judged(one) {
    const by = one.distance ? " By " + one.policy + ": " + one.distance + " (hand for policy, in BB)." : "";
    const beside = one.other ? " By " + one.other.policy + ": best " + one.other.best + ", " + blinds(one.other.cost_bb) + "." : "";
    const how = { "mapped": " Taken for " + one.taken_for + ".", "solved again": " The street was solved again with the bets that were made." }[one.how] || "";
    return how + by + beside;
  }
  function draw() {
    const { decisions, rows } = found;
    byId("review-said").textContent = found.title + ", " + found.hands.toLocaleString("en") + " hands: " +
      decisions.toLocaleString("en") + " decisions cost " + blinds(found.cost_bb) +
      (rows.length < decisions ? "; the costliest " + rows.length : "") + "." + (found.note ? " Tournaments: " + found.note + "." : "");
    byId("review-rows").replaceChildren(...rows.map((one) => {
      const made = button(null, one.where, () => go(one), { class: "review-row", "aria-current": String(one.place) === at, "data-place": one.place });
      made.append(element("b", one.shown_bb.toFixed(2)), element("span", null, {}, ...drawnHand(one.hand).childNodes),
        element("span", null, { class: "cards" }, ...page.split(one.board).map(drawnCard)),
        element("small", one.player + ", " + one.street + ": " + one.did + ", best " + one.best));
      return made;
    }));
    const one = here();
    byId("review-told").hidden = !one;
    if (!one) return;
    byId("review-told").textContent = one.player + ", " + one.position + ", " + (one.pot === "folded first in" ? one.pot : one.pot + " pot") + ": " + one.did + " with " + one.hand +
      " (" + (one.how === "solved again" ? "the solution: " : "the strategy: ") + percent(one.probability) + ") " + costs(one) + "; the best is " + one.best + "." +
      judged(one) + " " + one.where + ".";
  }
  const go = (one) => { location.hash = (one.link || "#line=") + "&review=" + one.place; };
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
    const link = "#line=" + spot.line + (spot.board ? "&board=" + spot.board : "");
    if (!shown() || one?.link !== link || !spot.hands) return -1;
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
