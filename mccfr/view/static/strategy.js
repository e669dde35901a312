/* What the page of `mccfr view` and reports draw alike: colours of actions, the grid of classes, bars, hands.
   Text is written as text, never as markup, and nothing is loaded. */
// biome-ignore lint/correctness/noUnusedVariables: the other scripts use it
const Strategy = (() => {
  "use strict";
  const SUITS = { c: "♣", d: "♦", h: "♥", s: "♠" };
  const REDS = 6;

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
  const percent = (share, digits = 1) => (share === null || share === undefined ? "–" : (100 * share).toFixed(digits) + " %");

  /* `fold`, `call` (and check) or `raise` (and bet). */
  const kindOf = (action) => ({ f: "fold", c: "call" })[action] || "raise";
  /* The class that colours each action: raises the redder the larger, however many there are. */
  function colours(actions) {
    const kinds = actions.map((one) => one.kind || kindOf(one.action));
    const raises = kinds.filter((kind) => kind === "raise").length;
    let place = 0;
    return kinds.map((kind) => {
      if (kind !== "raise") return kind + "-fill";
      const red = raises < 2 ? 3 : 1 + Math.round((place++ * (REDS - 1)) / (raises - 1));
      return "raise-" + (raises === 2 && red === REDS ? 5 : Math.max(red, raises < 4 ? 2 : 1));
    });
  }
  function parts(shares, colour) {
    return shares.map((share, action) => {
      const part = element("i", null, { class: colour[action] });
      part.style.width = 100 * share + "%";
      return part;
    });
  }
  const bar = (shares, colour) => element("span", null, { class: "bar" }, ...parts(shares, colour));

  function drawnCard(name) {
    const suit = name.length === 2 && SUITS[name[1]];
    return element("span", suit ? name[0] + suit : name, { class: "card " + (suit ? name[1] : "") });
  }
  /* A table's cell with a hand: its suits in colour. */
  function drawnHand(name) {
    const made = element("td", null, { class: "hand" });
    if (!/^(?:[2-9TJQKA][cdhs])+$/.test(name)) { made.textContent = name; return made; }
    for (const card of name.match(/../g)) made.append(element("span", card[0] + SUITS[card[1]], { class: "suit " + card[1] }));
    return made;
  }
  /* A button for each class of hands.
     cells: {shares, colour, height 0..1, title, figure, which may lack} or null where no hand is left */
  function drawGrid(box, columns, label, cells, chosen, choose) {
    box.replaceChildren();
    box.style.gridTemplateColumns = "repeat(" + columns + ", 1fr)";
    label.forEach((text, cell) => {
      const one = cells[cell];
      const made = button(null, one ? text + ": " + one.title : "", () => choose(cell),
        { class: "cell" + (one ? "" : " none"), tabindex: "-1", "data-class": text });
      made.disabled = !one;
      if (one) {
        const fill = element("span", null, { class: "fill" }, ...parts(one.shares, one.colour));
        fill.style.height = 100 * one.height + "%";
        made.append(fill);
      }
      made.append(element("span", text, { class: "name" }));
      if (one?.figure) made.append(element("span", one.figure, { class: "figure" }));
      if (cell === chosen) made.setAttribute("aria-current", "true");
      box.append(made);
    });
  }
  return { SUITS, bar, button, colours, drawGrid, drawnCard, drawnHand, element, kindOf, percent };
})();
