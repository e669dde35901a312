/* Hands against the strategy.  The server deals and knows all cards; what is said to it names the hand and the line that
   were seen, so that it is done once. */
// biome-ignore lint/correctness/noUnusedVariables: view.js uses it
const Play = (() => {
  "use strict";
  const { button, drawnCard, element } = Strategy;
  const byId = (id) => document.getElementById(id);
  let page = null;     // what view.js lends: ask, send, game, money, split
  let table = null;    // what /api/play says
  let busy = false;
  let left = "#line=";  // where one was before

  const shown = () => !byId("play").hidden;
  /* Show the table or leave it; whether it is shown. */
  function show(wanted) {
    if (!wanted && !/^#spot/.test(location.hash)) left = location.hash || "#line=";
    byId("play").hidden = !wanted;
    byId("tab-play").setAttribute("aria-selected", wanted);
    if (wanted) {
      document.title = "Play · " + page.game.title;
      if (table === null) say(() => page.ask("/api/play", {})).then(() => { if (table !== null && table.hand === null) sit(); });
    }
    return wanted;
  }
  async function say(what) {
    if (busy) return;
    busy = true;
    byId("play").classList.add("busy");
    try {
      table = await what();
      byId("play-problem").hidden = true;
    } catch (error) {
      byId("play-problem").textContent = error instanceof TypeError ? "The server does not answer." : error.message;
      byId("play-problem").hidden = false;
    }
    busy = false;
    byId("play").classList.remove("busy");
    if (table !== null && table.hand !== null) draw();
  }
  const sit = () => {
    const line = Train.drilled();
    Train.fresh();
    return say(() => page.send("/api/play/sit", { resolve: byId("play-resolve").value, ...(line ? { line } : {}) }));
  };
  const act = (action) => say(() => page.send("/api/play/act", { hand: table.hand, line: table.line, action }));
  const next = () => say(() => page.send("/api/play/deal", { hand: table.hand }));

  function drawnCards(text, hidden) {
    const names = text ? page.split(text) : [];
    return [...names.map(drawnCard), ...Array.from({ length: hidden - names.length }, () =>
      element("span", " ", { class: "card back", "aria-label": "face down" }))];
  }
  const big = (chips) => (chips / page.game.unit_chips).toFixed(2);
  const signed = (chips) => (chips > 0 ? "+" : "") + page.money(chips);
  function seat(id, role, cards, behind, mine) {
    const held = page.split(table.cards).length;
    byId(id).replaceChildren(element("b", mine ? "You" : page.game.title), element("span", role, { class: "quiet" }),
      element("span", null, { class: "held" }, ...drawnCards(cards, held)),
      element("span", behind === null ? "" : page.money(behind) + " behind", { class: "quiet" }));
  }
  function draw() {
    const mine = table.position, theirs = 1 - mine, over = table.result !== null, roles = page.game.roles;
    seat("seat-theirs", roles[theirs], over && table.result.shown ? table.result.shown : "",
      table.behind_chips && table.behind_chips[theirs], false);
    seat("seat-mine", roles[mine], table.cards, table.behind_chips && table.behind_chips[mine], true);
    byId("play-board").replaceChildren(...drawnCards(table.board, page.game.streets.at(-1).cards));
    byId("play-pot").textContent = "Pot " + page.money(table.pot_chips);
    drawLog();
    let raised = 0;
    byId("play-actions").replaceChildren(...table.actions.map((one) => {
      const made = button(one.name + " ", null, () => act(one.action), { class: "play-action " + one.kind, "data-play": one.action });
      const key = one.kind === "fold" ? "f" : one.kind === "call" ? "c" : String(++raised);
      if (raised < 10) made.append(element("kbd", key));
      return made;
    }));
    byId("play-other").hidden = over || !table.raise_chips;
    if (table.raise_chips) {
      byId("play-bounds").textContent = page.money(table.raise_chips[0]) + " to " + page.money(table.raise_chips[1]);
    }
    byId("play-next").hidden = !over;
    byId("play-result").hidden = !over;
    if (over) {
      const won = table.result.won_chips;
      byId("play-result").textContent = won > 0 ? "You win " + page.money(won) + "."
        : won < 0 ? "You lose " + page.money(-won) + "." : "You share the pot.";
    }
    byId("play-session").textContent = "Hand " + (table.hand + 1) + " · " + table.played + " played · " +
      signed(table.won_chips);
    Train.drawn(table);
  }
  function drawLog() {
    const box = byId("play-log");
    box.replaceChildren();
    const costs = [];
    let street = -1;
    for (const one of table.log) {
      if (one.street !== street) { street = one.street; box.append(element("b", page.game.streets[street].name)); }
      const who = one.player === table.position ? "You" : "Strategy";
      const step = element("span", null, { class: "step " + one.kind }, element("small", who + " "), one.name);
      box.append(table.result === null ? step : link(one, step));
      if (table.result !== null && one.player === table.position) {
        const told = element("small", " …", { class: "cost" });
        costs.push([one, told]);
        box.append(told);
      }
    }
    tellCosts(costs, table.hand);
  }
  const boardOf = (one, at = table) => page.split(at.board).slice(0, page.game.streets[one.street].cards).join("");
  /* What each of the person's decisions gave away, by the strategy; some take a moment. */
  async function tellCosts(costs, hand) {
    for (const [one, told] of costs) {
      const at = { line: one.line, board: boardOf(one), hand: table.cards, action: one.action };
      if (!told.isConnected || table.hand !== hand) return;
      const found = await page.ask("/api/cost", at).catch((error) => ({ cost_chips: null, sentences: [error.message] }));
      const least = 0.005 * page.game.unit_chips, wide = found.within_chips;
      told.textContent = found.cost_chips === null ? " ?" : found.verdict === "fine" ? " the best" : found.cost_chips < least ? " about the best"
        : wide < least ? " cost " + page.money(found.cost_chips) : " cost " + big(found.cost_chips) + " ± " + page.money(wide);
      told.title = found.sentences.join(" ");
    }
  }
  /* Once a hand is over, each of its decisions leads to what the strategy does there. */
  function link(one, step) {
    const cards = boardOf(one);
    const made = element("a", null, { href: "#line=" + encodeURIComponent(one.line).replaceAll("%2F", "/") +
      (cards ? "&board=" + cards : ""), title: "What the strategy does here" });
    made.append(step);
    return made;
  }
  function bet(event) {
    event.preventDefault();
    const amount = Number(byId("play-amount").value.replace(",", "."));
    const before = table.put_in_before;
    if (!(amount > 0)) return;
    byId("play-amount").value = "";
    act("r" + Math.round((amount * page.game.unit_chips + before) * 1e6) / 1e6);
  }
  function pressed(event) {
    if (!shown() || table === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
    const key = event.key, raises = table.actions.filter((one) => one.kind === "raise");
    const found = key === "f" ? table.actions.find((one) => one.kind === "fold")
      : key === "c" ? table.actions.find((one) => one.kind === "call")
        : /^[1-9]$/.test(key) ? raises[Number(key) - 1] : null;
    if (found) { event.preventDefault(); act(found.action); }
    else if (key === "n" && table.result !== null) { event.preventDefault(); next(); }
  }
  function begin(lent) {
    page = lent;
    const again = (hand) => say(() => page.send("/api/play/again", { hand }));
    Train.begin(Object.assign(Object.create(lent), { again, sit, redraw: () => { if (table !== null && table.hand !== null) Train.drawn(table); } }), (at, one) => boardOf(one, at));
    byId("tab-play").addEventListener("click", () => { location.hash = "#play"; });
    byId("tab-look").addEventListener("click", () => {
      if (byId("look").hidden || !byId("review").hidden) location.hash = left.replace(/&review=\d+/, "");
    });
    byId("play-next").addEventListener("click", next);
    byId("play-new").addEventListener("click", sit);
    byId("play-other").addEventListener("submit", bet);
    document.addEventListener("keydown", pressed);
  }
  /* Another strategy is shown: another table. */
  function turn() {
    table = null;
    byId("play-resolve-row").hidden = !page.game.any_bet;
    byId("play-unit").textContent = page.game.unit;
    Train.turn();
  }
  return { begin, show, shown, turn };
})();
