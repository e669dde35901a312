"use strict";
/* The page of `mccfr view`.  What it shows follows from the fragment of its address, #line=...&board=..., and from what
   the server answers to it.  Text that comes from there is written as text, never as markup. */
(function () {
  const byId = (id) => document.getElementById(id);
  const SUITS = { c: "♣", d: "♦", h: "♥", s: "♠" };
  const REDS = 6, ALL = -1;
  let game = null;            // what /api/game says
  let spot = null;            // the spot that is shown
  let equities = null;        // its equities, once they have come
  let chosen = ALL;           // cell of the grid whose hands are listed
  let shown = "strategy";     // or the position whose range is drawn
  let cards = [];             // the board as far as it was ever chosen: later streets are kept when one goes back
  let picking = null;         // cards being chosen
  let asked = 0;              // number of the newest request: answers to older ones are dropped

  /* --- small helpers --- */

  function element(name, text, attributes, ...children) {
    const made = document.createElement(name);
    if (text !== null && text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  function button(text, title, does, attributes) {
    const made = element("button", text, { type: "button", ...attributes });
    if (title) made.title = title;
    made.addEventListener("click", does);
    return made;
  }
  const percent = (share, digits = 1) => share === null ? "–" : (100 * share).toFixed(digits) + " %";
  const money = (chips) => (chips / game.unit_chips).toLocaleString("en", { maximumFractionDigits: 2 }) + " " + game.unit;
  const streetCards = (street) => game.streets[street].cards;

  /* Cards of a text such as Kc7d2s; of decks without suits one character each. */
  function split(text) {
    const width = Math.max(...game.deck.map((name) => name.length), 1), found = [];
    for (let place = 0; place < text.length; place += width) found.push(text.slice(place, place + width));
    return found;
  }
  function drawnCard(name) {
    const suit = name.length === 2 && SUITS[name[1]];
    return element("span", suit ? name[0] + suit : name, { class: "card " + (suit ? name[1] : "") });
  }
  function drawnHand(name) {
    const made = element("td", null, { class: "hand" }), parts = name.match(/^(?:[2-9TJQKA][cdhs])+$/);
    if (!parts) { made.textContent = name; return made; }
    for (const card of name.match(/../g)) made.append(element("span", card[0] + SUITS[card[1]], { class: "suit " + card[1] }));
    return made;
  }
  /* The class that colours each action: raises the redder the larger, however many there are. */
  function colours(actions) {
    const raises = actions.filter((one) => one.kind === "raise").length;
    let place = 0;
    return actions.map(function (one) {
      if (one.kind !== "raise") return one.kind + "-fill";
      const red = raises < 2 ? 3 : 1 + Math.round(place++ * (REDS - 1) / (raises - 1));
      return "raise-" + (raises === 2 && red === REDS ? 5 : Math.max(red, raises < 4 ? 2 : 1));
    });
  }
  const brief = (one) => one.kind === "raise" ? one.name.replace(/^All-in .*|^(Raise|Bet) (to |by )?/,
    (found) => found.startsWith("All-in") ? "All-in" : "") : one.name.split(" ")[0];
  function bar(shares, colour) {
    const made = element("span", null, { class: "bar" });
    shares.forEach(function (share, action) {
      const part = element("i", null, { class: colour[action] });
      part.style.width = 100 * share + "%";
      made.append(part);
    });
    return made;
  }

  /* --- where we are --- */

  function place() {
    const found = { line: "", board: "" };
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
    return "#line=" + encodeURIComponent(line).replaceAll("%2F", "/") + (board ? "&board=" + encodeURIComponent(board) : "");
  }
  /* Go to a line; `replaced` where the step is no place to come back to. */
  function go(line, board, replaced) {
    const to = address(line, board);
    if (to === location.hash) { load(); return; }
    if (replaced) { history.replaceState(null, "", to); load(); } else location.hash = to;
  }
  const lineStreet = (line) => (line.match(/\//g) || []).length;
  /* The board that goes with a line: what has been chosen, as far as the street has cards. */
  function boardOf(line) {
    const street = Math.min(lineStreet(line), game.streets.length - 1);
    let count = streetCards(street);
    for (let earlier = street; cards.length < count && earlier > 0; earlier--) count = streetCards(earlier - 1);
    return cards.slice(0, count).join("");
  }
  async function ask(path, query) {
    const answer = await fetch(path + "?" + new URLSearchParams(query));
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }
  async function load() {
    const at = place(), number = ++asked;
    if (at.board) {
      const given = split(at.board);
      if (given.join("") !== cards.slice(0, given.length).join("")) cards = given;
    }
    try {
      const found = await ask("/api/spot", at);
      if (number !== asked) return;
      spot = found;
      equities = null;
      picking = null;
      if (spot.board) cards = [...split(spot.board), ...cards.slice(split(spot.board).length)];
      problem("");
      draw();
      if (spot.missing_cards) openPicker();
      document.body.dataset.ready = address(spot.line, spot.board);
      if (!spot.missing_cards) {
        const more = await ask("/api/equity", at);
        if (number !== asked) return;
        equities = more;
        drawRanges();
        drawHands();
      }
      document.body.dataset.complete = address(spot.line, spot.board);
    } catch (error) {
      if (number !== asked) return;
      const silent = error instanceof TypeError;
      if (spot === null && !silent) {  // a bad link: the first decision, and what is wrong
        cards = firstCards();
        spot = await ask("/api/spot", { line: "", board: "" });
        draw();
      }
      problem(silent ? "The server does not answer: is mccfr view still running?" : error.message);
    }
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
    const there = spot.board ? split(spot.board).slice(before, count) : cards.slice(before, count);
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
    picking = spot.board ? split(spot.board) : cards.slice(0, needed);
    if (picking.length < firstCards().length) picking = firstCards();
    drawPicker();
  }
  function closePicker() { picking = null; drawPicker(); }
  function drawPicker() {
    byId("picker").hidden = picking === null;
    if (picking === null) return;
    const needed = streetCards(spot.street), box = byId("picker-cards");
    const left = needed - picking.length;
    byId("picker-title").textContent = game.streets[spot.street].name + " board: " +
      (left ? left + (left === 1 ? " card" : " cards") + " to choose" : "complete; take a card out to change it");
    box.replaceChildren();
    const suits = [...new Set(game.deck.map((name) => name.slice(1)))].sort().reverse();
    const ranks = [...new Set(game.deck.map((name) => name[0]))].reverse();
    box.style.gridTemplateColumns = "repeat(" + ranks.length + ", auto)";
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
  function randomBoard() {
    const needed = streetCards(spot.street), fixed = firstCards();
    if (needed === fixed.length) return;
    const known = spot.missing_cards ? (picking || cards.slice(0, needed)) : fixed;
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
    const box = byId("actions"), colour = colours(spot.actions), keys = keysOf(spot.actions);
    byId("who").textContent = spot.role + " to act";
    let text = "Pot " + money(spot.pot_chips);
    game.roles.forEach(function (role, player) {
      text += " · " + role + " " + (spot.behind_chips ? money(spot.behind_chips[player]) + " behind"
        : "has put in " + money(spot.put_in_chips[player]));
    });
    byId("money").textContent = text;
    box.replaceChildren();
    spot.actions.forEach(function (one, place) {
      const made = button(null, one.ends ? "The hand ends here" : "Go on (" + keys[place] + ")", () => take(one),
        { class: "action", "data-action": one.action });
      const size = one.pot_share === null ? "" : one.pot_share > 3 ? " " + one.pot_share.toFixed(0) + "× pot"
        : " " + Math.round(100 * one.pot_share) + " % pot";
      const name = element("span", one.name);
      name.append(element("small", size + (one.ends ? " · ends the hand" : "")));
      const share = spot.frequencies ? percent(spot.frequencies[place]) : "–";
      made.append(element("i", null, { class: colour[place] }), name,
        element("span", spot.hands ? share : "", { class: "share" }), ...(one.ends ? [] : [element("kbd", keys[place])]));
      made.disabled = one.ends;
      box.append(made);
    });
    byId("other").hidden = !game.any_bet || !spot.actions.some((one) => one.kind === "raise");
    byId("unit").textContent = game.unit + " over the hand";
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
    note.textContent = text;
    note.hidden = !text;
  }

  /* --- ranges and hands --- */

  function drawViews() {
    const box = byId("views"), names = [["strategy", spot.role + "'s strategy"], ...game.roles.map((role, player) =>
      [player, role + "'s range"])];
    box.replaceChildren(...names.map(([key, name]) => button(name, null, () => show(key), { role: "tab",
      "aria-selected": key === shown })));
  }
  function show(key) { shown = key; drawViews(); drawGrid(); drawHands(); }
  const whose = () => shown === "strategy" ? spot.player : shown;
  function drawGrid() {
    const box = byId("grid"), classes = spot.classes, colour = colours(spot.actions), player = whose();
    box.hidden = !game.square;
    byId("legend").hidden = !game.square || !classes;
    byId("legend").textContent = "A cell is filled as far as its hands come here, of those that come here most" +
      (shown === "strategy" ? "; widths are what they do." : ".");
    box.replaceChildren();
    box.style.gridTemplateColumns = "repeat(" + game.grid.columns + ", 1fr)";
    const most = classes ? Math.max(...classes.reach[player], 1e-300) : 1;
    game.grid.label.forEach(function (label, cell) {
      const there = classes !== null && classes.combos[cell] > 0, made = button(null, null, () => choose(cell),
        { class: "cell" + (there ? "" : " none"), tabindex: "-1", "data-class": label });
      if (there) {
        const fill = element("span", null, { class: "fill" }), reach = classes.reach[player][cell];
        fill.style.height = 100 * reach / most + "%";
        const parts = shown === "strategy" ? classes.probabilities[cell] : [1];
        parts.forEach(function (share, action) {
          const part = element("i", null, { class: shown === "strategy" ? colour[action] : "range-fill" });
          part.style.width = 100 * share + "%";
          fill.append(part);
        });
        made.append(fill);
        const text = shown === "strategy"
          ? spot.actions.map((one, action) => one.name + " " + percent(parts[action])).join(", ") + "; " : "";
        made.title = label + ": " + text + "reach " + percent(reach) + ", share " + percent(classes.shares[player][cell], 2);
      }
      made.disabled = !there;
      made.append(element("span", label, { class: "name" }));
      if (cell === chosen) made.setAttribute("aria-current", "true");
      box.append(made);
    });
  }
  function choose(cell) { chosen = chosen === cell ? ALL : cell; drawGrid(); drawHands(); }
  function drawRanges() {
    const box = byId("ranges");
    box.replaceChildren();
    if (!spot.ranges) { box.append(element("p", "Choose the board first.", { class: "quiet" })); return; }
    spot.ranges.forEach(function (one, player) {
      const mean = equities && equities.mean ? equities.mean[player] : null;
      const copy = button("Copy", "Copy the range as text", () => copyText(one.text, copy), { "data-range": one.text });
      box.append(element("div", null, { class: "range" }, element("span", one.role),
        element("span", one.combos.toLocaleString("en", { maximumFractionDigits: 1 }) + (game.square ? " combos" : " hands")),
        element("span", mean === null ? "" : "equity " + percent(mean)), copy));
    });
  }
  async function copyText(text, from) {
    try {
      await navigator.clipboard.writeText(text);
      from.textContent = "Copied";
      setTimeout(() => { from.textContent = "Copy"; }, 1500);
    } catch { window.prompt("The range:", text); }
  }
  function drawHands() {
    const box = byId("hands"), hands = spot.hands, player = whose();
    byId("all").hidden = chosen === ALL || !game.square;
    byId("hands-title").textContent = chosen === ALL || !game.square ? "Hands" : game.grid.label[chosen];
    box.replaceChildren();
    if (!hands) return;
    const colour = colours(spot.actions), acts = player === spot.player;
    const rows = hands.names.map((_, place) => place)
      .filter((place) => chosen === ALL || !game.square || hands.cells[place] === chosen);
    if (game.square) rows.sort((one, other) => hands.shares[player][other] - hands.shares[player][one] || other - one);
    const head = element("tr", null, {}, element("th", "hand"));
    if (acts) head.append(element("th"), ...spot.actions.map((one) => element("th", brief(one))));
    head.append(...["share", "reach", "equity"].map((text) => element("th", text)));
    const body = element("tbody");
    for (const place of rows) body.append(drawnRow(hands, place, player, acts, colour));
    box.append(element("table", null, {}, element("thead", null, {}, head), body));
  }
  function drawnRow(hands, place, player, acts, colour) {
    const row = element("tr", null, hands.reach[player][place] > 0 ? {} : { class: "gone" });
    row.append(drawnHand(hands.names[place]));
    if (acts) {
      const shares = hands.probabilities[place], drawn = element("td", null, {}, bar(shares, colour));
      if (!hands.trained[place]) drawn.title = "Training never came here with this hand: uniform";
      row.append(drawn, ...shares.map((share) => element("td", percent(share))));
    }
    const equity = equities && equities.equity ? equities.equity[player][place] : null;
    row.append(element("td", percent(hands.shares[player][place], 2)), element("td", percent(hands.reach[player][place])),
      element("td", percent(equity)));
    return row;
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
    "v": () => show(shown === "strategy" ? 0 : shown === 0 ? 1 : "strategy"),
    "b": () => picking === null ? openPicker() : closePicker(),
    "r": randomBoard, "t": turnTheme, "?": () => byId("keys").showModal(),
    "Escape": closePicker,
  };
  function pressed(event) {
    if (!spot || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    if (event.target instanceof HTMLInputElement) return;
    if (event.key.startsWith("Arrow") && byId("hands").contains(document.activeElement)) return;
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
    go(spot.line + "r" + Math.round(amount * game.unit_chips * 1e6) / 1e6, boardOf(spot.line));
  }
  async function begin() {
    try { const kept = localStorage.getItem("mccfr-theme"); if (kept) document.documentElement.dataset.theme = kept; }
    catch { /* as the system has it */ }
    byId("theme").addEventListener("click", turnTheme);
    byId("help").addEventListener("click", () => byId("keys").showModal());
    byId("other").addEventListener("submit", otherBet);
    byId("all").addEventListener("click", KEYS.a);
    byId("picker-close").addEventListener("click", closePicker);
    byId("picker-random").addEventListener("click", randomBoard);
    byId("picker-clear").addEventListener("click", () => { picking = firstCards(); drawPicker(); });
    try { game = await ask("/api/game", {}); } catch (error) { problem(error.message); return; }
    byId("title").textContent = game.title;
    byId("facts").textContent = [game.game, ...game.facts].join(" · ");
    document.querySelector("main").classList.toggle("list", !game.square);
    cards = firstCards();
    window.addEventListener("hashchange", load);
    document.addEventListener("keydown", pressed);
    await load();
  }
  begin();
})();
