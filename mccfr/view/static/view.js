/* The page of `mccfr view`.  What it shows follows from the fragment of its address, #line=...&board=..., and from what
   the server answers to it.  Text that comes from there is written as text, never as markup. */
const View = (() => {
  "use strict";
  const { SUITS, bar, button, colours, drawnCard, drawnHand, element, percent } = Strategy;
  const byId = (id) => document.getElementById(id);
  const ALL = -1, SOLVED = "solved", NONE = "";
  const MIXED = 0.95;         // a hand mixes that does nothing more often
  const SILENT = "The server does not answer: is mccfr view still running?";
  const NO_DRAW = "no draw";
  /* Kinds of hands, the best first, as the server names them. */
  const KINDS = { made: ["straight flush", "four of a kind", "full house", "flush", "straight", "set", "trips", "two pair",
    "pair", "high card"], draws: ["flush draw", "open-ended", "gutshot", NO_DRAW] };
  const RANKS = [..."AKQJT98765432"];
  const LABELS = RANKS.flatMap((row, down) => RANKS.map((column, across) =>
    down === across ? row + row : down < across ? row + column + "s" : column + row + "o"));
  const ROUGH = 0.1;          // of the pot: what can be beaten by more is no answer
  const POLL = 400;           // milliseconds between two looks at a spot that is being solved
  const lent = {};            // what the other scripts use
  let base = 0;               // number of the strategy that is shown: 0, or that of a spot that was typed
  let game = null;            // what /api/game says
  let spot = null;            // the spot that is shown
  let equities = null;        // its equities, once they have come
  let worth = null;           // its expected values, the same
  let beside = NONE;          // what is shown beside it: the number of a strategy, SOLVED, or nothing
  let other = null;           // that strategy here, as a spot; {problem} where it has none
  let solved = null;          // the spot solved again: what /api/solve says
  let chosen = ALL;           // cell of the grid whose hands are listed
  let shown = "strategy";     // or "difference", "equity", "ev", or the position whose range is drawn
  let wished = "strategy";    // what is shown as soon as there is such a view
  let views = [];             // which of these there are
  let sorted = { by: null, down: true };  // column that hands are sorted by; null: those that mix first, then by weight
  let cards = [];             // the board as far as it was ever chosen: later streets are kept when one goes back
  const only = { made: "", draws: "" };  // what hands are listed make, and may make; "": all
  let picking = null;         // cards being chosen
  let typed = "";             // rank of a card being typed, until its suit follows
  let asked = 0;              // number of the newest request: answers to older ones are dropped

  /* --- small helpers --- */

  const money = (chips) => (chips / game.unit_chips).toLocaleString("en", { maximumFractionDigits: 2 }) + " " + game.unit;
  const streetCards = (street) => game.streets[street].cards;

  /* Cards of a text such as Kc7d2s; of decks without suits one character each. */
  function split(text) {
    const width = Math.max(...game.deck.map((name) => name.length), 1), found = [];
    for (let place = 0; place < text.length; place += width) found.push(text.slice(place, place + width));
    return found;
  }
  const brief = (one) => one.kind === "raise" ? one.name.replace(/^All-in .*|^(Raise|Bet) (to |by )?/,
    (found) => found.startsWith("All-in") ? "All-in" : "") : one.name.split(" ")[0];
  /* --- where we are --- */

  function place() {
    const found = { line: "", board: "", beside: NONE, of: "0", review: "" };
    for (const part of location.hash.replace(/^#/, "").split("&")) {
      const cut = part.indexOf("=");
      if (cut < 0) continue;
      let value = part.slice(cut + 1);
      try { value = decodeURIComponent(value); } catch { /* as it stands: the server says what is wrong with it */ }
      if (part.slice(0, cut) in found) found[part.slice(0, cut)] = value;
    }
    return found;
  }
  function address(line, board) {
    return "#line=" + encodeURIComponent(line).replaceAll("%2F", "/") +
      (board ? "&board=" + encodeURIComponent(board) : "") + (beside && beside !== SOLVED ? "&beside=" + beside : "") + (base ? "&of=" + base : "") +
      (Review.shown() ? "&review=" + place().review : "");
  }
  /* Go to a line; `replaced` where the step is no place to come back to. */
  function go(line, board, replaced) {
    const to = address(line, board);
    if (to === location.hash) { load(); return; }
    if (replaced) { history.replaceState(null, "", to); load(); } else location.hash = to;
  }
  const toldOf = (error) => error instanceof TypeError ? SILENT : error.message;
  const lineStreet = (line) => (line.match(/\//g) || []).length;
  /* The board that goes with a line: what has been chosen, as far as the street has cards. */
  function boardOf(line) {
    const street = Math.min(lineStreet(line), game.streets.length - 1);
    let count = streetCards(street);
    for (let earlier = street; cards.length < count && earlier > 0; earlier--) count = streetCards(earlier - 1);
    return cards.slice(0, count).join("");
  }
  async function ask(path, query) { return answered(await fetch(path + "?" + new URLSearchParams({ of: base, ...query }))); }
  async function send(path, body) {
    return answered(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ of: base, ...body }) }));
  }
  async function answered(answer) {
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }
  async function load() {
    const number = ++asked, { line, board, beside: wanted, of, review } = place(), at = { line, board };
    const typed_ = Typed.show(location.hash), played = location.hash === "#play";
    byId("look").hidden = typed_ || played;
    if (!typed_ && (!game || (!played && Number(of) !== base))) {
      try { await turn(Number(of)); } catch (error) {
        if (error.message.includes("type a spot")) location.hash = "#spot";  // there is no strategy
        byId("note").hidden = true;
        problem(toldOf(error));
        return;
      }
      if (number !== asked) return;
    }
    await Review.show(typed_ || played ? "" : review).catch((error) => problem(toldOf(error)));
    byId("tab-look").setAttribute("aria-selected", !typed_ && !played && !Review.shown());
    if (number !== asked || Play.show(played) || typed_) return;
    if (wanted !== beside && beside !== SOLVED) beside = game.strategies[wanted] && wanted !== "0" ? wanted : NONE;
    if (board) {
      const given = split(board);
      if (given.join("") !== cards.slice(0, given.length).join("")) cards = given;
    }
    try {
      const found = await ask("/api/spot", at);
      if (number !== asked) return;
      spot = found;
      equities = worth = other = null;
      picking = null;
      if (Review.hand(spot) >= 0) chosen = game.square ? spot.hands.cells[Review.hand(spot)] : ALL;
      if (spot.board) cards = [...split(spot.board), ...cards.slice(split(spot.board).length)];
      problem("");
      draw();
      if (spot.missing_cards) openPicker();
      document.body.dataset.ready = address(spot.line, spot.board);
      if (!spot.missing_cards) await complete(at, number);
      else if (spot.missing_cards === 1) await RunOuts.read(spot, pick, () => number === asked);
      if (number === asked) document.body.dataset.complete = address(spot.line, spot.board);
    } catch (error) {
      if (number !== asked) return;
      const silent = error instanceof TypeError;
      if (spot === null && !silent) {  // a bad link: the first decision, and what is wrong
        cards = firstCards();
        spot = await ask("/api/spot", { line: "", board: "" });
        draw();
        complete({ line: "", board: "" }, number);
      }
      problem(toldOf(error));
    }
  }
  /* Show another strategy: what the page was opened with, or a spot that was typed. */
  async function turn(number) {
    game = await answered(await fetch("/api/game?of=" + number));
    base = number;
    byId("title").textContent = game.title;
    byId("facts").textContent = [game.game, ...game.facts].join(" · ");
    [cards, spot, solved, beside, chosen, wished] = [firstCards(), null, null, NONE, ALL, "strategy"];
    lent.game = game;
    byId("tab-review").hidden = !game.reviewed;
    Play.turn();
  }
  /* What comes later than the spot itself: what is beside it, equities, values where they are quick. */
  async function complete(at, number) {
    if (solved && (solved.line !== at.line || solved.board !== at.board)) solved = null;
    if (beside === SOLVED && !solved) beside = NONE;
    if (beside === SOLVED) other = solved.result && { ...spot, ...solved.result };
    else if (beside) {
      const found = await ask("/api/spot", { ...at, of: beside }).catch((error) => ({ problem: error.message }));
      if (number !== asked) return;
      other = found;
    }
    if (other) draw();
    const more = await ask("/api/equity", at);
    if (number !== asked) return;
    equities = more;
    drawViews();
    if (shown === "equity") drawGrid();
    drawRanges();
    drawHands();
    await value(at, number);
  }
  async function value(at, number) {
    const found = await ask("/api/values", at);
    if (number !== asked) return;
    worth = found;
    drawViews();
    if (shown === "ev") drawGrid();
    drawRanges();
    drawHands();
    drawActions();
    drawWorth();
  }
  function problem(text) {
    byId("problem").textContent = text;
    byId("problem").hidden = !text;
  }

  /* --- the line --- */

  function drawPath() {
    const box = byId("path");
    box.replaceChildren();
    for (let street = 0; street <= spot.street; street++) {
      const made = element("div", null, { class: "street" }, element("b", game.streets[street].name));
      const count = streetCards(street), before = street ? streetCards(street - 1) : 0;
      if (count > before) made.append(boardButton(before, count));
      for (const step of spot.path.filter((one) => one.street === street)) {
        const back = button(null, "Back to here", () => go(step.line, boardOf(step.line)), { class: "step " + step.kind });
        back.append(element("small", game.roles[step.player] + " "), step.name);
        made.append(back);
      }
      if (street === spot.street) {
        made.append(element("button", spot.role + " to act", { type: "button", class: "step", "aria-current": "step",
          disabled: "" }));
      }
      box.append(made);
    }
  }
  function boardButton(before, count) {
    const there = split(spot.board || "").slice(before, count);
    if (spot.missing_cards && there.length < count - before) {
      return button("choose " + (count - before), "Choose the board (b)", openPicker, { class: "cards lacking" });
    }
    const made = button(null, "Choose the board (b)", openPicker, { class: "cards" });
    made.append(...there.map(drawnCard));
    return made;
  }

  /* --- the board --- */

  function firstCards() { return game.first_board ? split(game.first_board) : []; }
  function openPicker() {
    const needed = streetCards(spot.street);
    if (needed === firstCards().length) return;
    picking = split(spot.board || "");
    if (picking.length < firstCards().length) picking = firstCards();
    drawPicker();
  }
  function closePicker() { picking = null; drawPicker(); }
  function drawPicker() {
    byId("picker").hidden = picking === null;
    if (picking === null) typed = "";
    if (picking === null) return;
    const needed = streetCards(spot.street), box = byId("picker-cards");
    const left = needed - picking.length;
    byId("picker-title").textContent = game.streets[spot.street].name + " board: " +
      (left ? left + (left === 1 ? " card" : " cards") + " to choose or type" + (typed && ": " + typed) : "complete; take a card out to change it");
    box.replaceChildren();
    const suits = [...new Set(game.deck.map((name) => name.slice(1)))].sort().reverse();
    const ranks = [...new Set(game.deck.map((name) => name[0]))].reverse();
    box.style.gridTemplateColumns = "repeat(" + ranks.length + ", minmax(0, 40px))";
    for (const suit of suits) {
      for (const rank of ranks) {
        const name = rank + suit;
        if (!game.deck.includes(name)) { box.append(element("span")); continue; }
        const made = button(null, null, () => pick(name), { "aria-pressed": picking.includes(name), "aria-label": name,
          class: "card " + suit, "data-card": name });
        made.textContent = SUITS[suit] ? rank + SUITS[suit] : name;
        made.disabled = firstCards().includes(name) || (!left && !picking.includes(name));
        box.append(made);
      }
    }
  }
  function pick(name) {
    picking = picking.includes(name) ? picking.filter((card) => card !== name) : [...picking, name];
    taken();
  }
  /* Go on where the board being chosen is complete. */
  function taken() {
    if (picking.length < streetCards(spot.street)) { drawPicker(); return; }
    cards = [...picking];
    picking = null;
    drawPicker();
    go(spot.line, cards.join(""), true);
  }
  /* Cards typed while they are chosen: a rank, then a suit.  Whether the key is of this. */
  function typeCard(key) {
    if (key === "Backspace") {
      if (!typed && picking.length > firstCards().length) picking.pop();
      typed = "";
      drawPicker();
      return true;
    }
    if (key.length > 1) return false;
    const text = typed + (typed ? key.toLowerCase() : key.toUpperCase());
    const found = game.deck.filter((name) => name.startsWith(text));
    if (!found.length && !typed) return keysOf(spot.actions).includes(key);  // no action while cards are due
    typed = found.length && !found.includes(text) ? text : found.length ? "" : typed;
    if (found.includes(text) && !picking.includes(text) && picking.length < streetCards(spot.street)) pick(text);
    else drawPicker();
    return true;
  }
  function randomBoard() {
    const needed = streetCards(spot.street), fixed = firstCards();
    if (needed === fixed.length) return;
    const known = spot.missing_cards ? (picking || split(spot.board || "")) : fixed;
    picking = [...known];
    while (picking.length < needed) {
      const card = game.deck[Math.floor(Math.random() * game.deck.length)];
      if (!picking.includes(card)) picking.push(card);
    }
    taken();
  }

  /* --- what is done --- */

  function keysOf(actions) {
    let raised = 0;
    return actions.map((one) => one.kind === "fold" ? "f" : one.kind === "call" ? "c" : String(++raised));
  }
  function take(action) { if (action && !action.ends) go(action.line, boardOf(action.line)); }
  function drawActions() {
    const box = byId("actions"), keys = keysOf(spot.actions), there = other && other.actions ? other : null;
    const all = there ? together() : spot.actions, colour = colours(all);
    byId("who").textContent = spot.role + " to act";
    let text = "Pot " + money(spot.pot_chips);
    game.roles.forEach((role, player) => {
      text += " · " + role + " " + (spot.behind_chips ? money(spot.behind_chips[player]) + " behind"
        : "has put in " + money(spot.put_in_chips[player]));
    });
    byId("money").textContent = text;
    box.replaceChildren();
    box.classList.toggle("two", there !== null);
    if (there) {
      box.append(element("div", null, { class: "action heads" }, element("i"), element("span"),
        ...pairNames().map((name) => titled(element("small", name), name)), element("span")));
    }
    all.forEach((one, row) => {
      const place = spot.actions.findIndex((each) => each.action === one.action), own = place >= 0;
      const made = button(null, one.ends ? "The hand ends here" : "Go on" + (own ? " (" + keys[place] + ")" : ""),
        () => take(one), { class: "action", "data-action": one.action });
      const size = one.pot_share === null ? "" : one.pot_share > 3 ? " " + one.pot_share.toFixed(0) + "× pot"
        : " " + Math.round(100 * one.pot_share) + " % pot";
      const name = element("span", one.name);
      const ev = own && worth && worth.taken ? worth.taken[place] : null, again = there && find(there.actions, one);
      const better = again && there.taken ? there.taken[there.actions.indexOf(again)] : null;
      const combos = own && spot.hands && game.square ? " · " + combosOf(place) + " combos" : "";
      name.append(element("small", size + combos + (one.ends ? " · ends the hand" : "") +
        (ev === null ? "" : " · EV of the hands that take it " + big(ev) + within(worth.taken_within[place])) + (better === null ? "" : " · solved " + big(better))));
      made.append(element("i", null, { class: colour[row] }), name);
      made.append(element("span", share(spot, place), { class: "share" }));
      if (there) made.append(element("span", share(there, there.actions.findIndex((each) => each.action === one.action)),
        { class: "share" }));
      made.append(one.ends || !own ? element("span") : element("kbd", keys[place]));
      made.disabled = one.ends;
      box.append(made);
    });
    byId("other").hidden = !game.any_bet || !spot.actions.some((one) => one.kind === "raise");
    byId("unit").textContent = game.unit + (spot.put_in_before ? " on this street" : "");
  }
  const find = (actions, wanted) => actions.find((one) => one.action === wanted.action);
  /* The actions of both strategies, in the order of their amounts. */
  function together() {
    const order = { fold: 0, call: 1, raise: 2 };
    return [...spot.actions, ...other.actions.filter((one) => !find(spot.actions, one))]
      .sort((one, another) => order[one.kind] - order[another.kind] || one.to_chips - another.to_chips);
  }
  /* The colours of a strategy's actions, the same for the same in both. */
  function shared(actions) {
    const all = compared() ? together() : actions, colour = colours(all);
    return actions.map((one) => colour[all.findIndex((each) => each.action === one.action)]);
  }
  function share(from, place) {
    if (!from.hands) return "";
    return place < 0 ? "0.0 %" : from.frequencies ? percent(from.frequencies[place]) : "–";
  }
  const big = (chips) => (chips / game.unit_chips).toFixed(2);
  const brief3 = (chips) => big(chips).slice(0, chips < 0 ? 5 : 4).replace(/\.$/, "");  // as much as a cell holds
  /* How many hands of the range do it. */
  function combosOf(action) {
    const reach = spot.hands.reach[spot.player];
    const sum = spot.hands.probabilities.reduce((all, row, place) => all + row[action] * reach[place], 0);
    return sum.toLocaleString("en", { maximumFractionDigits: 1 });
  }
  function drawNote() {
    const note = byId("note");
    let text = "";
    if (spot.readings.length) {
      text = "This line is not in the strategy's tree. It is taken for " + spot.readings.map((one) =>
        (one.line === null ? "a call" : one.line || "the start") +
        (one.after_call === null ? "" : " (a call leads to " + (one.after_call || "the end") + ")") +
        " with " + percent(one.probability)).join(", ") + ".";
    } else if (spot.hands && spot.frequencies === null) {
      text = "By these strategies nobody comes here: what is shown is what they would do all the same.";
    }
    if (other && other.problem) text += (text && " ") + "Compared: " + other.problem;
    note.textContent = text;
    note.hidden = !text;
  }

  /* --- ranges and hands --- */

  const compared = () => other !== null && other.classes ? other : null;
  function drawViews() {
    const names = [["strategy", spot.role + "'s strategy"], ...(compared() ? [["difference", "Difference"]] : []),
      ...game.roles.map((role, player) => [player, role + "'s range"]),
      ...(game.square && equities?.equity ? [["equity", "Equity"]] : []), ...(game.square && worth?.hands ? [["ev", "EV"]] : [])];
    views = names.map(([key]) => key);
    shown = views.includes(wished) ? wished : "strategy";
    byId("views").hidden = !spot.hands;
    byId("views").replaceChildren(...names.map(([key, name]) => button(name, null, () => show(key), { role: "tab",
      "aria-selected": key === shown })));
  }
  function show(key) { wished = key; drawViews(); drawGrid(); drawHands(); }
  const whose = () => game.roles[shown] ? shown : spot.player;
  /* What a strategy does with a class or hand, by the actions of both. */
  function across(actions, shares) {
    return together().map((one) => shares[actions.findIndex((each) => each.action === one.action)] || 0);
  }
  /* Half the sum of differences: the probability with which the two do something else. */
  function difference(own, others) {
    const there = across(compared().actions, others);
    return across(spot.actions, own).reduce((sum, share, action) => sum + Math.abs(share - there[action]), 0) / 2;
  }
  function cellsOf(from, actions) {
    const classes = spot.classes, player = whose(), colour = shared(actions);
    if (classes === null) return game.grid.label.map(() => null);
    const most = Math.max(...classes.reach[player], 1e-300), figures = figured(), means = figures ? meansOfClasses(figures.values) : [];
    const known = means.filter((one) => one !== null), low = Math.min(...known), high = Math.max(...known);
    return game.grid.label.map((_, cell) => {
      if (!classes.combos[cell]) return null;
      const reach = classes.reach[player][cell], shares = from.classes.probabilities[cell];
      const told = "weight " + percent(reach) + ", share " + percent(classes.shares[player][cell], 2);
      if (shown === "difference") {
        const apart = difference(classes.probabilities[cell], compared().classes.probabilities[cell]);
        return { shares: [reach / most], colour: ["difference-fill"], height: apart, title: percent(apart) + " apart; " + told };
      }
      if (figures) {
        const mean = means[cell];
        return { shares: [1], colour: ["range-fill"], title: mean === null ? told : figures.told(mean) + "; " + told,
          height: mean === null ? 0 : (mean - low) / (high - low || 1), figure: mean === null ? "" : figures.brief(mean) };
      }
      if (shown !== "strategy") return { shares: [1], colour: ["range-fill"], height: reach / most, title: told };
      const text = actions.map((one, action) => one.name + " " + percent(shares[action])).join(", ");
      return { shares, colour, height: reach / most, title: text + "; " + told };
    });
  }
  /* What the cells of a view have figures of, and how they are told; null where they have none. */
  const figured = () => shown === "ev" ? { values: worth.hands[spot.player], told: (ev) => "EV " + big(ev), brief: brief3 }
    : shown === "equity" ? { values: equities.equity[spot.player], told: (share_) => "equity " + percent(share_), brief: (share_) => (100 * share_).toFixed(0) }
    : null;
  /* Mean over the hands of each class, by their shares; null where nobody holds one. */
  function meansOfClasses(values) {
    const { cells, shares } = spot.hands, sums = game.grid.label.map(() => [0, 0]);
    values.forEach((value, hand) => {
      if (value === null) return;
      sums[cells[hand]][0] += shares[spot.player][hand] * value;
      sums[cells[hand]][1] += shares[spot.player][hand];
    });
    return sums.map(([sum, weight]) => weight > 0 ? sum / weight : null);
  }
  function drawGrid() {
    const two = compared() !== null && shown === "strategy";
    byId("grids").hidden = !game.square || !spot.classes;
    byId("grids").classList.toggle("two", two);
    document.querySelector("main").classList.toggle("compared", compared() !== null);
    document.querySelector("main").classList.toggle("list", !game.square);
    byId("list").hidden = spot.missing_cards > 1;
    document.querySelector("main").classList.toggle("lacking", game.square && !spot.classes);
    byId("legend").hidden = !game.square || !spot.classes;
    byId("legend").textContent = figured() ? (shown === "ev" ? "EV in " + game.unit : "Equity in percent") + ", between the lowest and the highest of a class."
      : shown === "difference"
      ? "A cell is filled as high as the two do something else with it (half the sum of differences of probabilities), and " +
        "as wide as its hands come here, of those that come here most."
      : "Height: how much of a class is left, beside the class with the most" + (shown === "strategy" ? "; widths: what it does." : ".");
    byId("name-here").hidden = byId("panel-beside").hidden = !two;
    byId("name-here").textContent = game.strategies[0];
    const drawn = (id, from) => Strategy.drawGrid(byId(id), game.grid.columns, game.grid.label,
      cellsOf(from, from.actions), chosen, choose);
    drawn("grid", spot);
    if (!two) return;
    byId("name-beside").textContent = besideName();
    drawn("grid-beside", compared());
  }
  const pairNames = () => beside === SOLVED ? ["blueprint", "solved"] : [game.strategies[0], game.strategies[beside]];
  const besideName = () => beside === SOLVED ? "Solved again" : game.strategies[beside];
  function choose(cell) { chosen = chosen === cell ? ALL : cell; drawGrid(); drawHands(); }
  function drawRanges() {
    const box = byId("ranges");
    box.replaceChildren();
    if (!spot.ranges) { box.append(element("p", "Choose the board first.", { class: "quiet" })); return; }
    spot.ranges.forEach((one, player) => {
      const mean = equities && equities.mean ? equities.mean[player] : null;
      const copy = button("Copy", "Copy the range as text", () => copyRange(player, copy), { "data-range": one.text });
      const ev = worth && worth.mean && worth.mean[player] !== null ? worth.mean[player] : null;
      box.append(element("div", null, { class: "range" }, element("span", one.role),
        element("span", one.combos.toLocaleString("en", { maximumFractionDigits: 1 }) + (game.square ? " combos" : " hands")),
        element("span", mean === null ? "" : "equity " + percent(mean)),
        element("span", ev === null ? "" : "EV " + big(ev) + within(worth.mean_within[player])), copy));
    });
  }
  const within = (chips) => chips > 0.005 * game.unit_chips ? " ± " + big(chips) : "";
  function drawWorth() {
    const box = byId("worth");
    box.textContent = !worth ? "" : worth.why ? worth.why : (worth.exact ? "EV is exact by this strategy."
      : "EV is an estimate over " + worth.boards + " boards, with 95 % intervals.") + " It is what is won from here on, in " + game.unit + "; folding has EV 0.";
    box.hidden = !worth;
  }
  async function copyRange(player, from) {
    const notation = byId("notation").value;
    try {
      const { ranges } = notation === "mccfr" ? spot
        : await ask("/api/ranges", { line: spot.line, board: spot.board, of: base, notation });
      await copyText(ranges[player].text, from);
    } catch (error) { problem(toldOf(error)); }
  }
  async function copyText(text, from) {
    try {
      await navigator.clipboard.writeText(text);
      from.textContent = "Copied";
      setTimeout(() => { from.textContent = "Copy"; }, 1500);
    } catch { window.prompt("The range:", text); }
  }
  /* Hands that are listed together before the flop, and else one by one. */
  const merged = () => game.square && chosen === ALL && !streetCards(spot.street);
  /* The columns of the list: what their heads say, what they sort by (larger first), and their cells. */
  function columnsOf(player, pair) {
    const hands = spot.hands, together_ = merged(), acts = player === spot.player;
    const per = (name) => (place) => together_ ? spot.classes[name][player][hands.cells[place]] : hands[name][player][place];
    const figure = (text, value, told = (found) => percent(found)) =>
      ({ text, value, cell: (place) => element("td", told(value(place))) });
    const found = [{ text: "hand", value: (place) => place,
      cell: (place) => drawnHand(together_ ? game.grid.label[hands.cells[place]] : hands.names[place]) }];
    if (acts) found.push({ text: pair ? pairNames()[0] : "", cell: (place) => drawnBar(spot, hands, place) });
    if (acts && pair) {
      found.push({ text: pairNames()[1], cell: (place) => drawnBar(pair, pair.hands, place) },
        figure("apart", (place) => difference(hands.probabilities[place], pair.hands.probabilities[place])));
    }
    const told = !pair ? spot : pair.values ? pair : null;
    if (acts && told) {
      found.push(...told.actions.map((one, action) => ({ text: brief(one), cell: (place) => drawnAction(told, place, action),
        value: (place) => told.hands.probabilities[place][action] })));
    }
    found.push(figure("share", per("shares"), (share_) => percent(share_, 2)));
    if (!acts || !pair) found.push(figure("weight", per("reach")));
    const chips = (won) => won === null ? "–" : big(won);
    const equity = figure("equity", (place) => equities && equities.equity ? equities.equity[player][place] : null);
    const ev = figure("EV", (place) => worth && worth.hands ? average(place, worth.hands[player]) : null, chips);
    ev.cell = (place) => {
      const made = element("td", chips(ev.value(place))), rough = worth && worth.hands ? average(place, worth.hands_within[player]) : null;
      if (rough) made.append(element("small", within(rough)));
      return made;
    };
    found.push(equity, ev);
    if (game.square && streetCards(spot.street) && !pair && worth && worth.hands) {
      found.push(figure("EQR", (place) => realised(equity.value(place), ev.value(place)), (share_) => percent(share_, 0)));
    }
    if (acts && pair && pair.values) found.push(figure("EV solved", (place) => evSolved(pair, place), chips));
    return found;
  }
  /* What is made of equity: EV as a share of what it would win of the pot; null where either is not known. */
  const realised = (equity, ev) => ev === null || !(equity >= 0.01) ? null : ev / (equity * spot.pot_chips);
  const evSolved = (pair, place) => pair.values[place].reduce((sum, value, action) =>
    sum === null || value === null ? null : sum + value * pair.hands.probabilities[place][action], 0);
  /* Whether a hand does several things, so that a player has to know how often. */
  const mixes = (place) => spot.hands.shares[spot.player][place] > 0 && Math.max(...spot.hands.probabilities[place]) < MIXED;
  function drawHands() {
    const box = byId("hands"), hands = spot.hands, player = whose(), acts = player === spot.player;
    const pair = acts ? compared() : null;
    byId("all").hidden = chosen === ALL || !game.square;
    byId("hands-title").textContent = chosen === ALL || !game.square ? "Hands" : game.grid.label[chosen];
    box.replaceChildren();
    drawFilters();
    byId("listed").textContent = "";
    if (!hands) return;
    const columns = columnsOf(player, pair), seen = new Set(), reviewed = Review.hand(spot);
    const rows = hands.names.map((_, place) => place).filter((place) => {
      const cell = hands.cells[place], first = !merged() || !seen.has(cell);
      seen.add(cell);
      return first && (chosen === ALL || !game.square || cell === chosen) && listed(place);
    });
    if (hands.made) {
      const [weight, share_] = ["reach", "shares"].map((name) => rows.reduce((sum, place) => sum + hands[name][player][place], 0));
      byId("listed").textContent = weight.toLocaleString("en", { maximumFractionDigits: 1 }) + " combos, " +
        percent(share_) + " of the range";
    }
    const weigh = columns.find((one) => one.text === "share").value;
    const apart = (place) => shown === "difference" ? difference(hands.probabilities[place], pair.hands.probabilities[place]) : 1;
    const by = columns.find((one) => one.value && one.text === sorted.by);
    if (by) rows.sort((one, another) => inOrder(by.value(one), by.value(another)) || another - one);
    else if (game.square || shown === "difference") {
      const weight = new Map(rows.map((place) => [place, weigh(place) * apart(place)]));
      const mixed = (place) => Number(shown === "strategy" && acts && mixes(place));
      rows.sort((one, another) => mixed(another) - mixed(one) || weight.get(another) - weight.get(one) || another - one);
    }
    const head = element("tr", null, {}, ...columns.map(drawnHead)), body = element("tbody");
    for (const place of rows) {
      const cells = columns.map((one) => { const made = one.cell(place); made.dataset.head = one.text; return made; });
      body.append(element("tr", null, { ...(hands.reach[player][place] > 0 ? {} : { class: "gone" }), ...(place === reviewed ? { "aria-current": "true" } : {}) }, ...cells));
    }
    box.append(element("table", null, {}, element("thead", null, {}, head), body));
  }
  /* Whether the filters let a hand through. */
  function listed(place) {
    const { made, draws } = spot.hands;
    if (!made) return true;
    return (!only.made || made[place] === only.made) &&
      (!only.draws || (only.draws === NO_DRAW ? !draws[place] : draws[place].split(", ").includes(only.draws)));
  }
  /* The kinds of hands that there are here. */
  function drawFilters() {
    const hands = spot.hands, known = Boolean(hands && hands.made);
    byId("filters").hidden = !known;
    if (!known) return;
    const there = { made: new Set(hands.made), draws: new Set(hands.draws.flatMap((text) => text ? text.split(", ") : [NO_DRAW])) };
    for (const [name, all] of Object.entries({ made: "made hand", draws: "draw" })) {
      if (!there[name].has(only[name])) only[name] = "";
      const choices = KINDS[name].filter((kind) => there[name].has(kind));
      byId("only-" + name).hidden = choices.length < 2;
      byId("only-" + name).replaceChildren(element("option", "any " + all, { value: "" }),
        ...choices.map((kind) => element("option", kind, { value: kind })));
      byId("only-" + name).value = only[name];
    }
  }
  /* By the column that was chosen; what is not known comes last. */
  function inOrder(one, another) {
    if (one === null || another === null) return (one === null) - (another === null);
    return sorted.down ? another - one : one - another;
  }
  function drawnHead(one) {
    const made = titled(element("th"), one.text);
    if (!one.value) { made.textContent = one.text; return made; }
    if (one.text === sorted.by) made.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    made.append(button(one.text, "Sort by it; a third time: hands that mix first", () => {
      sorted = one.text !== sorted.by ? { by: one.text, down: true } : { by: sorted.down ? one.text : null, down: false };
      drawHands();
    }));
    return made;
  }
  /* EV of an action of a strategy with a hand, in chips; null where it is not known. */
  function evOf(from, place, action) {
    const values = from === spot ? worth && worth.actions : from.values;
    return values ? average(place, values, action) : null;
  }
  /* Mean of values over the hands that a row of the list stands for; null where there is none. */
  function average(place, values, action) {
    if (!merged()) return action === undefined ? values[place] : values[place][action];
    const { cells } = spot.hands;
    const known = values.map((one) => action === undefined ? one : one[action]).filter((one, hand) => cells[hand] === cells[place] && one !== null);
    return known.length ? known.reduce((sum, one) => sum + one) / known.length : null;
  }
  function toldAction(from, place, action) {
    const ev = evOf(from, place, action);
    return from.actions[action].name + " " + percent(from.hands.probabilities[place][action]) + (ev === null ? "" : ", EV " + big(ev) + (from === spot ? within(average(place, worth.actions_within, action)) : ""));
  }
  function drawnBar(from, hands, place) {
    const made = element("td", null, {}, bar(hands.probabilities[place], shared(from.actions)));
    made.title = (from !== spot || hands.trained[place] ? "" : "Training never came here with this hand: all actions alike. ") +
      from.actions.map((_, action) => toldAction(from, place, action)).join("; ");
    return made;
  }
  function drawnAction(from, place, action) {
    const ev = evOf(from, place, action), made = element("td", percent(from.hands.probabilities[place][action]));
    if (ev !== null) made.append(element("small", big(ev)));
    return titled(made, toldAction(from, place, action));
  }
  function titled(made, title) { made.title = title; return made; }

  /* --- what is beside --- */

  /* A line as a spot, from its street's beginning; a typed spot with its fields again, and what is played there locked. */
  const streetLine = () => spot.street_line.slice(0, spot.street_line.lastIndexOf("/") + 1);
  function drawTyped() {
    const begins = game.square && spot.behind_chips && streetLine() && !spot.missing_cards && streetCards(spot.street) >= 3;
    byId("as-spot").hidden = !begins;
    byId("again").hidden = byId("lock").hidden = !game.asked;
  }
  function drawBeside() {
    const choice = byId("beside"), names = game.strategies.map((name, number) => [String(number), name]).slice(1);
    if (solved && solved.result) names.push([SOLVED, "this spot, solved again"]);
    choice.replaceChildren(element("option", "nothing", { value: NONE }),
      ...names.map(([key, name]) => element("option", name, { value: key })));
    choice.value = beside;
    byId("beside-row").hidden = !names.length;
  }
  function besideChosen() {
    beside = byId("beside").value;
    go(spot.line, spot.board || boardOf(spot.line), true);
  }

  /* --- solving again --- */

  function drawSolving() {
    const cards_ = streetCards(spot.street), ready = cards_ >= 3 && !spot.missing_cards;
    byId("solving").hidden = !game.any_bet;
    byId("solve").hidden = !ready;
    if (!ready) {
      byId("solve-stop").hidden = byId("solve-progress").hidden = true;
      byId("solve-state").textContent = cards_ >= 3 ? "" : "Spots are solved again from the flop on: before it too much follows.";
      return;
    }
    const here = solved && solved.line === spot.line && solved.board === spot.board ? solved : null;
    const running = here !== null && !here.done;
    byId("solve").disabled = running;
    byId("solve-stop").hidden = !running;
    let text = cards_ === 3 ? "On later streets hands share the strategy's buckets; as a spot a flop is solved with every hand for itself, in minutes." : "";
    if (here) {
      const found = here.result, share = found && found.gap_chips / spot.pot_chips;
      text = here.problem || (running ? "Solving, " + here.seconds.toFixed(0) + " s" : "Solved in " + here.seconds.toFixed(1) + " s") +
        (found ? ": " + found.iterations + " of " + here.iterations + " iterations" + (found.gap_chips !== null ?
          ", can be beaten by " + big(found.gap_chips) + " " + game.unit + " (" + percent(share) + " of the pot)" + (share > ROUGH ? ": too rough to play by" : "")
          : running ? found.iterations === here.iterations ? ", finding EV …" : "" : ", an estimate: by how much it can be beaten is not known") : " …");
    }
    byId("solve-state").textContent = text;
    byId("solve-progress").hidden = !running;
    byId("solve-progress").value = here && here.result ? here.result.iterations / here.iterations : 0;
  }
  /* How far what was solved again is told of: EV comes after the frequencies. */
  const stage = () => solved.result && solved.result.iterations + (solved.result.values ? " with EV" : "");
  async function solve() {
    const number = asked, at = { line: spot.line, board: spot.board };
    try {
      solved = await send("/api/solve", at);
      while (number === asked) {
        drawSolving();
        const before = stage();
        solved = await ask("/api/solve", {});
        if (number !== asked) return;
        if (solved.result && stage() !== before) {
          beside = SOLVED;
          other = { ...spot, ...solved.result };
          draw();
        }
        if (solved.done) { drawSolving(); return; }
        await new Promise((done) => setTimeout(done, POLL));
      }
    } catch (error) { problem(error.message); }
  }

  function draw() {
    if (game.square && chosen !== ALL && spot.classes && !spot.classes.combos[chosen]) chosen = ALL;
    drawPath();
    drawPicker();
    drawActions();
    drawNote();
    drawViews();
    drawGrid();
    drawRanges();
    drawHands();
    drawWorth();
    drawBeside();
    drawSolving();
    drawTyped();
    document.title = (spot.line || "start") + (spot.board ? " " + spot.board : "") + " · " + game.title;
  }

  /* --- keys and themes --- */

  function dark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function turnTheme() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("mccfr-theme", document.documentElement.dataset.theme); } catch { /* not kept */ }
  }
  function back() { if (spot && spot.path.length) { const line = spot.path.at(-1).line; go(line, boardOf(line)); } }
  function move(down, across) {
    if (!game.square || !spot.classes) return;
    const columns = game.grid.columns, count = game.grid.label.length;
    let cell = chosen === ALL ? 0 : chosen;
    if (chosen !== ALL) {
      const row = Math.floor(cell / columns) + down, column = cell % columns + across;
      if (row < 0 || row >= count / columns || column < 0 || column >= columns) return;
      cell = row * columns + column;
    }
    if (!spot.classes.combos[cell]) return;
    chosen = cell;
    drawGrid();
    drawHands();
  }
  const KEYS = {
    "Backspace": back, "u": back, "Home": () => go("", boardOf("")),
    "ArrowUp": () => move(-1, 0), "ArrowDown": () => move(1, 0), "ArrowLeft": () => move(0, -1),
    "ArrowRight": () => move(0, 1),
    "a": () => { chosen = ALL; drawGrid(); drawHands(); },
    "v": () => show(views[(views.indexOf(shown) + 1) % views.length]),
    "b": () => picking === null ? openPicker() : closePicker(),
    "r": randomBoard, "t": turnTheme, "p": () => { location.hash = "#play"; }, "?": () => byId("keys").showModal(),
    "Escape": closePicker,
  };
  function pressed(event) {
    if (!spot || Play.shown() || Typed.shown() || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    if (event.target.matches("input, select, textarea")) return;
    if (event.key.startsWith("Arrow") && byId("hands").contains(document.activeElement)) return;
    if (picking !== null && typeCard(event.key)) { event.preventDefault(); return; }
    const place = keysOf(spot.actions).indexOf(event.key);
    if (place < 0 && !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    if (place >= 0) take(spot.actions[place]); else KEYS[event.key]();
  }
  function otherBet(event) {
    event.preventDefault();
    const amount = Number(byId("amount").value.replace(",", "."));
    if (!(amount > 0)) { problem("Write an amount such as 2.5."); return; }
    byId("amount").value = "";
    go(spot.line + "r" + Math.round((amount * game.unit_chips + spot.put_in_before) * 1e6) / 1e6, boardOf(spot.line));
  }
  async function begin() {
    try { const kept = localStorage.getItem("mccfr-theme"); if (kept) document.documentElement.dataset.theme = kept; }
    catch { /* as the system has it */ }
    byId("theme").addEventListener("click", turnTheme);
    byId("help").addEventListener("click", () => byId("keys").showModal());
    byId("other").addEventListener("submit", otherBet);
    byId("all").addEventListener("click", KEYS.a);
    for (const name of Object.keys(only)) {
      byId("only-" + name).addEventListener("change", (event) => { only[name] = event.target.value; drawHands(); });
    }
    byId("beside").addEventListener("change", besideChosen);
    byId("solve").addEventListener("click", solve);
    byId("solve-stop").addEventListener("click", () => send("/api/solve/stop", {}));
    byId("picker-close").addEventListener("click", closePicker);
    byId("picker-random").addEventListener("click", randomBoard);
    byId("picker-clear").addEventListener("click", () => { picking = firstCards(); drawPicker(); });
    Object.assign(lent, { problem, toldOf, ask, send, money, split, labels: LABELS });
    byId("as-spot").addEventListener("click", () => {
      location.hash = "#spot&" + new URLSearchParams({ line: streetLine(), board: spot.board, of: base });
    });
    const change = (at) => { location.hash = "#spot&" + new URLSearchParams({ ...game.asked, ...at }); };
    byId("again").addEventListener("click", () => change({}));
    byId("lock").addEventListener("click", () => change({ at: spot.street_line }));
    Play.begin(lent);
    Typed.begin(lent);
    Review.begin(lent);
    RunOuts.begin(lent);
    window.addEventListener("hashchange", load);
    document.addEventListener("keydown", pressed);
    await load();
  }
  return { begin };
})();
View.begin();
