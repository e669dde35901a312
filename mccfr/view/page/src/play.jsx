/* The table at which hands are played against the strategy. */
import { useEffect } from "preact/hooks";
import { decisionAddress } from "./address.js";
import { BetForm } from "./bet_form.jsx";
import { Card, HiddenCard } from "./cards.jsx";
import { Choice } from "./controls.jsx";
import { keysOf } from "./actions.jsx";
import { money, signedMoney } from "./figures.js";
import { base, game, isMany, openStrategy, split } from "./study.js";
import { act, boardAt, busy, deal, drill, drills, failed, isOver, openTable, resolve, sit, table } from "./table_of_play.js";
import { Trainer } from "./train.jsx";

const RESOLVE = { "": "never", river: "on the river", turn: "from the turn on", flop: "from the flop on" };

function Cards({ text, most }) {
  const names = text ? split(text) : [];
  const hidden = Array.from({ length: most - names.length }, (_, place) => <HiddenCard key={place} />);
  return [...names.map((name) => <Card key={name} name={name} />), ...hidden];
}
/* Return the name of the player in a position: "You", the strategy's name, or with more than two players the position. */
const nameOf = (position, strategy) =>
  position === table.value.position ? "You" : isMany.value ? game.value.roles[position] : strategy;
function Seat({ position }) {
  const { behind_chips: behind, street_chips: bets, cards, left, result } = table.value;
  const mine = position === table.value.position, folded = !left.includes(position);
  const won = result?.won_by_position[position], details = [
    behind && `${money(behind[position])} behind`,
    folded ? "folded" : !result && bets[position] > 0 && `bet ${money(bets[position])}`,
    isMany.value && won && signedMoney(won),
  ];
  return (
    <div class={folded ? "seat folded" : "seat"} data-seat={game.value.roles[position]}>
      <b>{nameOf(position, game.value.title)}</b>
      {(mine || !isMany.value) && <span class="quiet">{game.value.roles[position]}</span>}
      {(mine || !folded) && <span><Cards text={mine ? cards : result?.shown[position]} most={split(cards).length} /></span>}
      <span class="quiet">{details.filter(Boolean).join(" · ")}</span>
    </div>
  );
}
/* The table: the opponents in the order of their turns, the board, and the user. */
function Felt() {
  const { position, board, pot_chips: pot } = table.value, count = game.value.roles.length;
  return (
    <div id="felt">
      <div id="seat-theirs">
        {Array.from({ length: count - 1 }, (_, place) => (position + place + 1) % count).map((one) => <Seat key={one} position={one} />)}
      </div>
      <div id="middle">
        <span><Cards text={board} most={game.value.streets.at(-1).cards} /></span><span>Pot {money(pot)}</span>
      </div>
      <div id="seat-mine"><Seat position={position} /></div>
    </div>
  );
}

function Choices() {
  const { actions, raise_chips: bounds, board } = table.value, keys = keysOf(actions);
  return (
    <>
      <div id="play-actions">
        {actions.map((one, place) => (
          <button key={one.action} type="button" class={`play-action ${one.kind}`} data-play={one.action}
            onClick={() => act(one.action)}>
            {one.name} {keys[place].length === 1 && <kbd>{keys[place]}</kbd>}
          </button>
        ))}
      </div>
      {bounds && (
        <BetForm id="play-other" label="Bet or raise to" here={board !== ""} onBet={act}>
          <span class="quiet">{money(bounds[0])} to {money(bounds[1])}</span>
        </BetForm>
      )}
    </>
  );
}
function resultText({ won_chips: won }) {
  if (won) return won > 0 ? `You win ${money(won)}.` : `You lose ${money(-won)}.`;
  return table.value.left.includes(table.value.position) ? "You share the pot." : "You fold and lose nothing.";
}

/* An action of the hand.  Once the hand is over, it links to the strategy at this decision. */
function Entry({ one }) {
  const step = (
    <span class={`step ${one.kind}`}><small>{nameOf(one.player, "Strategy")} </small>{one.name}</span>
  );
  if (!isOver()) return step;
  const to = decisionAddress({ line: one.line, board: boardAt(one), of: base.value });
  return <a href={to} title="Show the strategy at this decision">{step}</a>;
}
function Log() {
  const { log } = table.value;
  return (
    <section id="play-log" aria-label="Actions of the hand">
      {log.map((one, place) => [
        one.street !== log[place - 1]?.street && <b key={`street ${one.street}`}>{game.value.streets[one.street].name}</b>,
        <Entry key={one.line} one={one} />,
      ])}
    </section>
  );
}

function Session() {
  const { hand, played, won_chips: won } = table.value;
  return (
    <p class="row">
      <span id="play-session" class="quiet">Hand {hand + 1} · {played} played · {signedMoney(won)}</span>
      <span class="space" />
      {game.value.any_bet && (
        <span>
          <Choice id="play-resolve" label={`Strategy re-solves its hands${isMany.value ? " once two players are left" : ""}`}
            value={resolve.value} choices={Object.entries(RESOLVE)} onChoose={(street) => { resolve.value = street; }} />
        </span>
      )}
      <button type="button" onClick={() => sit()}>New session</button>
    </p>
  );
}
function Drills() {
  const choices = drills.value.filter((one) => one.line).map(({ line, name }) => [line, name]);
  const choose = (line) => { drill.value = line; sit(); };
  return choices.length > 0 && (
    <span><Choice id="train-drill" label="Drill" value={drill.value} none="from the first action" choices={choices} onChoose={choose} /></span>
  );
}

/* Handle a key at the table; return whether it was used. */
export function playKey(key) {
  if (!table.value) return false;
  const { actions } = table.value, found = actions[keysOf(actions).indexOf(key)];
  if (found) act(found.action);
  else if (key === "n" && isOver()) deal();
  else return false;
  return true;
}

export function Play() {
  useEffect(() => {
    openStrategy(base.value).then(openTable).then(() => { document.title = `Play · ${game.value.title}`; })
      .catch((error) => { failed.value = error.message; });
  }, []);
  return (
    <section id="play" class={busy.value ? "busy" : ""} aria-label="Play">
      {failed.value && <p class="problem" role="alert">{failed.value}</p>}
      {table.value && game.value && (
        <>
          <Felt />
          <p id="play-result" role="status">{isOver() && resultText(table.value.result)}</p>
          <Choices />
          {isOver() && <p><button id="play-next" type="button" onClick={deal}>Next hand</button></p>}
          <Log />
          <Trainer><Drills /></Trainer>
          <Session />
        </>
      )}
    </section>
  );
}
