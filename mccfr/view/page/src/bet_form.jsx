/* A form for a bet of any amount, typed in the unit of money as the player's total on this street. */
import { useRef } from "preact/hooks";
import { unit } from "./figures.js";

/* here: true after the first street, where the form says "on this street"; onBet(action): such as b400, in chips */
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
