/* The trainer at the table: after each decision what the strategy does and what it cost, a session's score, hands to try
   again, and spots that every hand begins with. */
// biome-ignore lint/correctness/noUnusedVariables: play.js uses it
const Train = (() => {
  "use strict";
  const { button, element, percent } = Strategy;
  const KEPT = 10;     // hands to try again
  const byId = (id) => document.getElementById(id);
  let page = null, boardOf = null;
  let told = new Set();  // decisions of this hand that have been told
  let at = "";           // the hand
  let score = null;      // of the session: {decisions, cost, costly: [{hand, line, cost}]}
  let session = 0;

  const on = () => byId("train-on").checked;
  function fresh() {
    score = { decisions: 0, cost: 0, costly: [] };
    session += 1;
    at = "";
    byId("train-told").replaceChildren();
    tell();
  }
  /* The table as it stands: own decisions that are new are told, one after the other. */
  async function drawn(table) {
    if (score === null) fresh();
    byId("train").hidden = false;
    const key = table.hand + (table.again ? " again" : "") + (table.result === null ? "" : " over");
    if (at.split(" over")[0] !== key.split(" over")[0] || (at.endsWith("over") && !key.endsWith("over"))) {
      told = new Set();
      byId("train-told").replaceChildren();
    }
    at = key;
    const own = table.log.filter((one, place) => one.player === table.position && place >= table.opened);
    for (const one of on() ? own : []) {
      if (told.has(one.line)) continue;
      told.add(one.line);
      await judge(table, one, session);
    }
    tell();
  }
  async function judge(table, one, mine) {
    const where = { line: one.line, board: boardOf(table, one) }, box = element("p", one.name + ": …");
    byId("train-told").append(box);
    const asked = await Promise.all([
      page.ask("/api/spot", where), page.ask("/api/cost", { ...where, hand: table.cards, action: one.action }),
    ]).catch((error) => [null, { cost_chips: null, sentences: [error.message] }]);
    const [spot, found] = asked;
    if (mine !== session) return;
    const least = 0.005 * page.game.unit_chips, place = spot === null ? -1 : spot.hands.names.indexOf(table.cards);
    const evs = new Map((found.actions || []).map((each) => [each.action, each]));
    const ev = (action) => evs.has(action) ? " (EV " + page.money(evs.get(action).ev_chips) + (evs.get(action).within_chips > least
      ? " ± " + page.money(evs.get(action).within_chips) : "") + ")" : "";
    const plays = place < 0 ? "" : spot.actions.map((action, n) => action.name + " " + percent(spot.hands.probabilities[place][n]) + ev(action.action)).join(", ");
    box.textContent = "You: " + one.name + (plays ? "; the strategy: " + plays : "") + ". " + found.sentences.join(" ");
    box.className = found.cost_chips === null ? "quiet" : found.verdict;
    if (found.cost_chips === null || table.again) return;
    score.decisions += 1;
    score.cost += found.cost_chips;
    if (found.verdict === "costly") {
      score.costly.push({ hand: table.hand, line: one.line, name: one.name, cards: table.cards, cost: found.cost_chips });
      score.costly.sort((one, other) => other.cost - one.cost);
      score.costly.length = Math.min(score.costly.length, KEPT);
    }
    tell();
  }
  function tell() {
    byId("train-score").textContent = score.decisions === 0 ? "" : score.decisions + (score.decisions === 1 ? " decision, " : " decisions, ") +
      page.money(score.cost) + " given away, " + page.money(score.cost / score.decisions) + " each";
    byId("train-again").replaceChildren(...score.costly.map((one) =>
      button(one.cards + " " + one.name + " " + page.money(one.cost), "Try this hand again", () => page.again(one.hand), { "data-again": one.hand })));
  }
  /* Another strategy is shown: its spots to drill. */
  async function turn() {
    score = null;
    const list = byId("train-drill");
    const found = await page.ask("/api/play/drills", {}).catch(() => ({ drills: [] }));
    list.replaceChildren(element("option", "from the first action", { value: "" }),
      ...found.drills.filter((one) => one.line).map((one) => element("option", one.name, { value: one.line })));
    byId("train-drilling").hidden = found.drills.length === 0;
  }
  const drilled = () => byId("train-drill").value;
  function begin(lent, of) {
    page = lent;
    boardOf = of;
    byId("train-drill").addEventListener("change", () => page.sit());
    byId("train-on").addEventListener("change", () => page.redraw());
  }
  return { begin, drawn, drilled, fresh, turn };
})();
