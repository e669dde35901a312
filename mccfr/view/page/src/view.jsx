/* The page of `mccfr view`. */
import { render } from "preact";
import { goTo, lastDecision, route } from "./address.js";
import { helping, Keys } from "./keys.jsx";
import { Look } from "./look.jsx";
import { Play } from "./play.jsx";
import { Positions } from "./positions.jsx";
import { openReview } from "./review.jsx";
import { Spot } from "./spot.jsx";
import { game, isMany } from "./study.js";
import { restoreTheme, turnTheme } from "./theme.js";
import "./strategy.css";
import "./view.css";

const VIEWS = { look: Look, review: Look, positions: Positions, spot: Spot, play: Play };
const lookAgain = () => goTo(lastDecision.value.replace(/&review=\d+/, ""));

function Tab({ id, name, title, onOpen }) {
  const current = route.value.tab === id;
  return (
    <button id={`tab-${id}`} type="button" title={title} aria-current={current ? "page" : undefined}
      onClick={() => { if (!current) onOpen(); }}>{name}</button>
  );
}
function Header() {
  const { title, game: name, facts, reviewed } = game.value || { title: "mccfr view", facts: [] };
  return (
    <header>
      <h1 id="title">{title}</h1>
      <details id="facts" class="quiet"><summary>{[name || title, ...facts.filter((one) => one.startsWith("unfinished"))].join(" · ")}</summary>{facts.join(" · ")}</details>
      <nav class="tabs" aria-label="Views">
        <Tab id="look" name="Look" onOpen={lookAgain} />
        {isMany.value && game.value.square && (
          <Tab id="positions" name="Positions" title="Preflop charts by position: first in, and facing a raise" onOpen={() => goTo("#positions")} />
        )}
        {reviewed && <Tab id="review" name="Review" title="Decisions of played hands, the costliest first" onOpen={openReview} />}
        <Tab id="spot" name="Spot" title="Type a spot and solve it" onOpen={() => goTo("#spot")} />
        <Tab id="play" name="Play" title="Play hands against the strategy (p)" onOpen={() => goTo("#play")} />
      </nav>
      <button type="button" title="Light or dark (t)" onClick={turnTheme}>Theme</button>
      <button type="button" title="Keys (?)" aria-label="Keys" onClick={() => { helping.value = true; }}>?</button>
    </header>
  );
}
function Page() {
  const View = VIEWS[route.value.tab];
  return <><Header /><main><View /></main><Keys /></>;
}

restoreTheme();
render(<Page />, document.body);
