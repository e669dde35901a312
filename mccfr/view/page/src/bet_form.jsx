/* A bet of any amount, typed in the unit of money as what it is on this street. */
import { useRef } from "preact/hooks";
import { unit } from "./figures.js";

/* here: whether earlier streets had bets of their own; onBet: takes the action, such as b400 */
export function BetForm({ id, label, here, onBet, children }) {
  const input = useRef(null);
  function bet(event) {
    event.preventDefault();
    const chips = Number(input.current.value.replace(",", ".")) * unit.value.chips;
    if (!(chips > 0)) return;
    input.current.value = "";
    onBet(`b${Math.round(chips * 1e6) / 1e6}`);
  }
  return (
    <form id={id} onSubmit={bet}>
      <label for={`${id}-amount`}>{label}</label>{" "}
      <input id={`${id}-amount`} ref={input} inputMode="decimal" autoComplete="off" size="6" required /> {unit.value.name}
      {here ? " on this street" : ""} <button type="submit">Go</button> {children}
    </form>
  );
}
