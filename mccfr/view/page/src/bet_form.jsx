/* A bet of any amount, typed in the unit of money as what it is on this street. */
import { useRef } from "preact/hooks";
import { unit } from "./figures.js";

/* before: chips put in on earlier streets; onBet: takes the action, such as r700 */
export function BetForm({ id, label, before, onBet, children }) {
  const input = useRef(null);
  function bet(event) {
    event.preventDefault();
    const chips = Number(input.current.value.replace(",", ".")) * unit.value.chips + before;
    if (!(chips > before)) return;
    input.current.value = "";
    onBet(`r${Math.round(chips * 1e6) / 1e6}`);
  }
  return (
    <form id={id} onSubmit={bet}>
      <label for={`${id}-amount`}>{label}</label>{" "}
      <input id={`${id}-amount`} ref={input} inputMode="decimal" autoComplete="off" size="6" required /> {unit.value.name}
      {before ? " on this street" : ""} <button type="submit">Go</button> {children}
    </form>
  );
}
