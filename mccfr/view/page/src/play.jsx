/* The table at which hands are played against the strategy. */
import { useEffect } from "preact/hooks";
import { decisionAddress } from "./address.js";
import { BetForm } from "./bet_form.jsx";
import { Card, HiddenCard } from "./cards.jsx";
import { Choice } from "./controls.jsx";
import { keysOf } from "./actions.jsx";
import { money, signedMoney } from "./figures.js";
import { base, game, openStrategy, split } from "./study.js";
import { act, actionOfKey, boardAt, busy, deal, drill, drills, failed, isOver, openTable, resolve, sit, table } from "./table_of_play.js";
import { Trainer } from "./train.jsx";

const RESOLVE = { "": "never", river: "on the river", turn: "from the turn on", flop: "from the flop on" };

function Cards({ text, most }) {
  const names = text ? split(text) : [];
  const hidden = Array.from({ length: most - names.length }, (_, place) => <HiddenCard key={place} />);
  return [...names.map((name) => <Card key={name} name={name} />), ...hidden];
}
function Seat({ id, name, position, cards }) {
  const { behind_chips: behind, cards: own } = table.value;
  return (
    <div id={id} class="seat">
      <b>{name}</b>
      <span class="quiet">{game.value.roles[position]}</span>
      <span><Cards text={cards} most={split(own).length} /></span>
      <span class="quiet">{behind && `${money(behind[position])} behind`}</span>
    </div>
  );
}
function Felt() {
  const { position, result, cards, board, pot_chips: pot } = table.value;
  return (
    <div id="felt">
      <Seat id="seat-theirs" name={game.value.title} position={1 - position} cards={result?.shown} />
      <div id="middle">
        <span><Cards text={board} most={game.value.streets.at(-1).cards} /></span><span>Pot {money(pot)}</span>
      </div>
      <Seat id="seat-mine" name="You" position={position} cards={cards} />
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
  return won > 0 ? `You win ${money(won)}.` : won < 0 ? `You lose ${money(-won)}.` : "You share the pot.";
}

/* An action of the hand; once the hand is over it leads to what the strategy does there. */
function Entry({ one }) {
  const step = (
    <span class={`step ${one.kind}`}><small>{one.player === table.value.position ? "You" : "Strategy"} </small>{one.name}</span>
  );
  if (!isOver()) return step;
  const to = decisionAddress({ line: one.line, board: boardAt(one), of: base.value });
  return <a href={to} title="What the strategy does here">{step}</a>;
}
function Log() {
  const { log } = table.value;
  return (
    <section id="play-log" aria-label="What was done">
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
          <Choice id="play-resolve" label="It solves its hands again" value={resolve.value} choices={Object.entries(RESOLVE)}
            onChoose={(street) => { resolve.value = street; }} />
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

/* The keys of the table.  Whether the key has one. */
export function playKey(key) {
  if (!table.value) return false;
  const found = actionOfKey(key);
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
