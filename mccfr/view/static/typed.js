/* A spot that is typed or painted, and solved.  Its fields stand in the address, #spot&board=...&oop=..., so that a link
   carries them; what is solved is looked at as a run. */
// biome-ignore lint/correctness/noUnusedVariables: view.js uses it
const Typed = (() => {
  "use strict";
  const { SUITS, button, colours, drawGrid, drawnCard, element, percent } = Strategy;
  const byId = (id) => document.getElementById(id);
  const POLL = 500;          // milliseconds between two looks at what is solved
  const COMPILED = 10;       // seconds after which there is something to see, but the first time
  const AS_A_RULE = 200;     // iterations that 0.3 % of the pot take
  const SIDES = { oop: "Out of position", ip: "In position" };
  const LOCK = "lock";       // a third grid: the hands that do the action which is being locked
  const EVERY = /^\d*\.?\d+\s*%$/;  // a lock's share of every hand
  const ANY_ACTION = [["f", "Fold"], ["c", "Check or call"], ["b", "Any bet or raise: 0 %"]];  // before a tree is known
  const NAMES = ["board", "oop", "ip", "pot", "stack", "bets", "raises", "donk", "allin_spr", "rake", "rake_cap", "to", "locks"];
  const BOUND = ["board", "oop", "ip", "pot", "stack"];   // what a strategy's line says
  const weights = { oop: null, ip: null, lock: null };    // of each class, as the server has read the range
  const asked = { oop: Promise.resolve(), ip: Promise.resolve(), lock: Promise.resolve() };  // of the server, in order
  let page = null;           // what view.js lends
  let line = "", of = 0;     // a strategy's line that the spot is, and the strategy; "": it is typed
  let tree = null;           // number of the solved spot whose actions can be locked
  let state = null;          // what /api/spots says
  let watching = 0;          // number of the newest watch over it
  let painting = null;       // {side, weight, cells} while the mouse is down

  const field = (name) => byId("spot-" + name);
  const shown = () => !byId("spot").hidden;
  function fields() {
    return Object.fromEntries(NAMES.map((name) => [name, field(name).value.trim()]).filter(([, text]) => text));
  }
  function address(all) {
    return "#spot&" + new URLSearchParams(line ? { ...all, line, of } : all);
  }
  /* Show the spot of an address, or leave it; whether it is shown. */
  function show(hash) {
    const wanted = /^#spot(&|$)/.test(hash);
    byId("spot").hidden = !wanted;
    byId("tab-spot").setAttribute("aria-selected", wanted);
    if (!wanted) return false;
    document.title = "Spot · mccfr view";
    const given = new URLSearchParams(hash.slice(6));
    if (given.size) fill(given);
    else if (!weights.oop) { for (const side of Object.keys(SIDES)) read(side); actionsToLock(); }
    watch();
    return true;
  }
  async function fill(given) {
    line = given.get("line") || "";
    of = Number(given.get("of") || 0);
    for (const name of NAMES) field(name).value = given.get(name) || "";
    if (line) {
      try {
        const [game, there] = await Promise.all([page.ask("/api/game", { of }),
          page.ask("/api/spot", { line, board: field("board").value, of })]);
        there.ranges.forEach((one, player) => { field(Object.keys(SIDES)[player]).value = one.text; });
        field("pot").value = there.pot_chips;
        field("stack").value = there.behind_chips ? there.behind_chips[0] : "";
        byId("spot-from").textContent = "After " + line + " of " + game.title + ", by its own bets unless others are given.";
      } catch (error) { line = ""; problem(page.toldOf(error)); }
    }
    drawBoard();
    for (const side of Object.keys(SIDES)) read(side);
    byId("lock-line").value = given.get("at") || "";
    byId("spot-locking").open = given.has("at") || field("locks").value !== "";
    if (page.game && page.game.asked) tree = page.game.of;
    actionsToLock();
    byId("spot-from").hidden = !line;
    field("bets").placeholder = line ? "its own" : "50%";
  }
  function problem(text) {
    byId("spot-problem").textContent = text;
    byId("spot-problem").hidden = !text;
  }

  /* --- ranges --- */

  /* Have the server read a range, after some classes have been given a weight. */
  function read(side, classes, weight) { asked[side] = asked[side].then(() => ask(side, classes, weight)); }
  async function ask(side, classes, weight) {
    const told = byId("spot-told-" + side), before = field(side).value, key = side === LOCK && lockedHere();
    const every = side === LOCK && EVERY.test(before.trim());
    if (every && !classes) {
      weights[side] = page.labels.map(() => parseFloat(before) / 100);
      told.textContent = "of every hand";
      draw(side);
      return;
    }
    const order = { range: every ? "" : before, board: field("board").value.trim() };
    if (classes) Object.assign(order, { classes: classes.join(), weight: String(weight) });
    try {
      const found = await page.send("/api/spots/range", order);
      if (side === LOCK && key !== lockedHere()) return;
      weights[side] = found.weights;
      if (classes && field(side).value === before) {  // unless somebody types
        field(side).value = found.text;
        if (side === LOCK) setLock(found.text);
      }
      told.textContent = found.combos.toLocaleString("en", { maximumFractionDigits: 1 }) + " combos";
      told.classList.remove("wrong");
      field(side).setAttribute("aria-invalid", "false");
    } catch (error) {
      told.textContent = error.message;
      told.classList.add("wrong");
      field(side).setAttribute("aria-invalid", "true");
    }
    draw(side);
  }
  function draw(side) {
    const cells = page.labels.map((_, cell) => {
      const weight = weights[side] ? weights[side][cell] : 0;
      return { shares: [1], colour: side === LOCK ? colours([{ action: byId("lock-action").value }]) : ["range-fill"], height: weight, title: percent(weight, 0) };
    });
    drawGrid(byId("spot-grid-" + side), 13, page.labels, cells, -1, () => {});
  }
  const paint = () => Math.min(1, Math.max(0, Number(byId("spot-weight").value) / 100 || 0));
  const cellAt = (event) => {
    const found = document.elementFromPoint(event.clientX, event.clientY);
    return found && found.closest(".cell");
  };
  function begin_(side, event) {
    const cell = cellAt(event);
    if (!cell) return;
    event.preventDefault();
    if (side !== LOCK) edited();
    const own = page.labels.indexOf(cell.dataset.class), weight = paint();
    const there = Math.abs((weights[side] || [])[own] - weight) < 1e-3;
    painting = { side, weight: there ? 0 : weight, cells: new Set() };
    over(event);
  }
  function over(event) {
    const cell = painting && cellAt(event);
    if (!cell || !byId("spot-grid-" + painting.side).contains(cell) || painting.cells.has(cell.dataset.class)) return;
    painting.cells.add(cell.dataset.class);
    weights[painting.side] = weights[painting.side] || page.labels.map(() => 0);
    weights[painting.side][page.labels.indexOf(cell.dataset.class)] = painting.weight;
    cell.querySelector(".fill").style.height = 100 * painting.weight + "%";
  }
  function end() {
    if (!painting) return;
    const { side, weight, cells } = painting;
    painting = null;
    read(side, [...cells], weight);
  }
  /* What a line of a strategy says is changed: from now on the spot is a typed one. */
  function edited() {
    if (!line) return;
    line = "";
    byId("spot-from").textContent = "Changed: ranges, pot and stack are those typed here, bets half the pot unless given.";
  }

  /* --- locks --- */

  const lockLine = () => byId("lock-line").value.trim();
  const lockedHere = () => lockLine() + "=" + byId("lock-action").value;
  /* What is said of each action, by line. */
  function locks() {
    const found = new Map();
    for (const text of field("locks").value.split("\n").filter((one) => one.includes("="))) {
      const cut = text.indexOf("="), at = text.slice(0, cut).trim(), actions = found.get(at) || new Map();
      for (const part of text.slice(cut + 1).split(";")) {
        const [, action, what] = /^\s*(\S+)\s+(.*?)\s*$/.exec(part) || [];
        if (action) actions.set(action, what);
      }
      found.set(at, actions);
    }
    return found;
  }
  /* Say something of the action that is chosen; of "" nothing, of null of no action. */
  function setLock(what) {
    const all = locks(), actions = new Map(what === null ? [] : all.get(lockLine()));
    if (what) actions.set(byId("lock-action").value, what); else actions.delete(byId("lock-action").value);
    if (actions.size) all.set(lockLine(), actions); else all.delete(lockLine());
    field("locks").value = [...all].map(([at, parts]) => at + "=" + [...parts].map((one) => one.join(" ")).join("; ")).join("\n");
  }
  function drawLock() {
    field(LOCK).value = locks().get(lockLine())?.get(byId("lock-action").value) || "";
    read(LOCK);
  }
  /* The actions of the line, once a tree is known. */
  async function actionsToLock() {
    let actions = ANY_ACTION, wrong = "";
    if (tree !== null) {
      try {
        const there = await page.ask("/api/spot", { of: tree, line: lockLine(), board: field("board").value.trim() });
        actions = there.actions.map((one) => [one.street_action, one.name]);
        byId("lock-who").textContent = there.role + ":";
      } catch (error) { wrong = page.toldOf(error); }
    }
    const said = locks().get(lockLine()) || new Map(), chosen = byId("lock-action").value;
    const more = [...said.keys()].filter((action) => !actions.some(([known]) => known === action)).map((action) => [action, action]);
    byId("lock-action").replaceChildren(...[...actions, ...more].map(([action, name]) => element("option", name, { value: action })));
    if ([...actions, ...more].some(([action]) => action === chosen)) byId("lock-action").value = chosen;
    byId("lock-problem").textContent = wrong;
    drawLock();
  }

  /* --- the board --- */

  const boardCards = () => field("board").value.trim().match(/../g) || [];
  function drawBoard() {
    const there = boardCards(), box = byId("spot-deck");
    box.replaceChildren();
    for (const suit of "shdc") {
      for (const rank of "AKQJT98765432") {
        const made = button(null, null, () => pick(rank + suit), { class: "card " + suit, "data-card": rank + suit,
          "aria-label": rank + suit, "aria-pressed": there.includes(rank + suit) });
        made.textContent = rank + SUITS[suit];
        made.disabled = there.length >= 5 && !there.includes(rank + suit);
        box.append(made);
      }
    }
    byId("spot-cards").replaceChildren(...there.map(drawnCard));
  }
  function pick(name) {
    const there = boardCards();
    field("board").value = (there.includes(name) ? there.filter((card) => card !== name) : [...there, name]).join("");
    edited();
    drawBoard();
    for (const side of Object.keys(SIDES)) read(side);
  }

  /* --- solving --- */

  async function solve(event) {
    event.preventDefault();
    problem("");
    const all = fields(), order = { ...all };
    if (line) for (const name of BOUND) if (name !== "board") delete order[name];
    history.replaceState(null, "", address(all));
    try {
      state = await page.send("/api/spots/solve", line ? { ...order, line, of } : order);
      watch();
    } catch (error) { problem(page.toldOf(error)); }
  }
  async function watch() {
    const number = ++watching;
    let silent = false;
    while (number === watching && shown()) {
      const answer = await page.ask("/api/spots", {}).catch((error) => error);  // an error where nothing was typed yet
      if (silent) problem("");
      silent = answer instanceof TypeError;
      if (silent) problem(page.toldOf(answer)); else state = answer instanceof Error ? null : answer;
      if (number !== watching) return;
      drawState();
      if (!silent && (!state || state.done)) return;
      await new Promise((done) => setTimeout(done, POLL));
    }
  }
  const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
  const seconds = (time) => time < 90 ? time.toPrecision(2) + " s" : time < 5400 ? Math.round(time / 60) + " min" : (time / 3600).toFixed(1) + " h";
  function plan() {
    const { infosets, memory_bytes: memory, seconds_an_iteration: each } = state.plan;
    const size = memory < 1e9 ? Math.ceil(memory / 1e6) + " MB" : (memory / 1e9).toFixed(1) + " GB";
    return infosets.toLocaleString("en") + " decisions with a hand each, " + size + " of memory; about " + seconds(Math.max(1, AS_A_RULE * each)) +
      " for " + AS_A_RULE + " iterations, as it takes as a rule.";
  }
  function drawState() {
    const running = state !== null && !state.done, last = state && state.curve.at(-1);
    byId("spot-solve").disabled = running;
    byId("spot-stop").hidden = byId("spot-progress").hidden = !running;
    byId("spot-open").hidden = !state || state.of === null;
    if (state && state.of !== null && state.of !== tree) { tree = state.of; actionsToLock(); }
    byId("spot-plan").textContent = state ? [...state.said, ...(state.plan ? [plan()] : [])].map(sentence).join(" ") : "";
    if (!state) { byId("spot-state").textContent = ""; return; }
    if (state.problem) { problem(state.problem); byId("spot-state").textContent = ""; return; }
    const far = last ? ": can be beaten by " + percent(last[1], 2) + " of the pot after " + last[0] + " iterations"
      : running && state.seconds > COMPILED ? ": the first time, the program has to be compiled" : "";
    byId("spot-state").textContent = (running ? (state.stopping ? "Stopping" : state.plan ? "Solving" : "Building the tree") + ", " +
      state.seconds.toFixed(0) + " s" : (state.stopped ? "Stopped after " : "Solved in ") + state.seconds.toFixed(0) + " s") + far + ".";
    if (last) byId("spot-progress").value = Math.min(1, Math.log(state.curve[0][1] / last[1]) / Math.log(state.curve[0][1] / state.to) || 0);
    else byId("spot-progress").removeAttribute("value");
    if (state.answer) {
      const { equity, ev_chips: ev, gain_chips: gain, unlocked_gain_chips: unlocked } = state.answer;
      byId("spot-state").textContent += Object.values(SIDES).map((name, player) => " " + name + ": equity " + percent(equity[player]) +
        ", EV " + ev[player].toFixed(2) + " chips, could gain " + gain[player].toFixed(2) +
        (unlocked ? " (" + unlocked[player].toFixed(2) + " without locks)" : "") + ".").join("");
    }
  }
  async function copyLink() {
    const text = location.origin + location.pathname + address(fields());
    history.replaceState(null, "", address(fields()));
    try {
      await navigator.clipboard.writeText(text);
      byId("spot-link").textContent = "Copied";
      setTimeout(() => { byId("spot-link").textContent = "Copy link"; }, 1500);
    } catch { window.prompt("The link:", text); }
  }
  function sideBox(side) {
    const grid = element("div", null, { class: "grid", id: "spot-grid-" + side, "aria-label": (SIDES[side] || "Locked hands") + ": paint" });
    grid.addEventListener("pointerdown", (event) => { if (event.target.releasePointerCapture) event.target.releasePointerCapture(event.pointerId); begin_(side, event); });
    const text = element("textarea", null, { id: "spot-" + side, rows: "3", spellcheck: "false", placeholder: "QQ+,A5s-A2s:0.5,AhKh" });
    if (side !== LOCK) text.addEventListener("input", edited);
    text.addEventListener("change", () => { if (side === LOCK) setLock(text.value.trim()); read(side); });
    return element("div", null, { class: "panel" }, element("div", null, { class: "row" },
      element("label", SIDES[side] || "Hands that do it", { for: "spot-" + side }), element("span", null, { id: "spot-told-" + side, class: "quiet" })), grid, text);
  }
  function begin(lent) {
    page = lent;
    byId("spot-sides").replaceChildren(...Object.keys(SIDES).map(sideBox));
    byId("spot-lock-side").replaceChildren(sideBox(LOCK));
    byId("lock-line").addEventListener("change", actionsToLock);
    byId("lock-action").addEventListener("change", drawLock);
    field("locks").addEventListener("change", actionsToLock);
    byId("lock-all").addEventListener("click", () => { setLock(Math.round(1e4 * paint()) / 100 + "%"); drawLock(); });
    byId("lock-none").addEventListener("click", () => { setLock(null); drawLock(); });
    byId("spot-presets").replaceChildren(...[100, 75, 50, 25, 0].map((share) => button(share + " %", null, () => {
      byId("spot-weight").value = share;
    }, { "data-weight": share })));
    document.addEventListener("pointermove", over);
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
    for (const name of BOUND) if (!SIDES[name]) field(name).addEventListener("input", edited);
    field("board").addEventListener("change", () => { drawBoard(); for (const side of Object.keys(SIDES)) read(side); });
    byId("spot-form").addEventListener("submit", solve);
    byId("spot-stop").addEventListener("click", () => page.send("/api/spots/stop", {}));
    byId("spot-link").addEventListener("click", copyLink);
    byId("spot-open").addEventListener("click", () => { location.hash = "#line=&of=" + state.of; });
    byId("tab-spot").addEventListener("click", () => { if (!shown()) location.hash = "#spot"; });
    drawBoard();
  }
  return { begin, show, shown };
})();
