/* Controls that several views use. */

/* A list to choose from.
   label: text before the list; name: text for screen readers only; choices: texts, or pairs of a value and a text
   none: text of the entry with value "", if there is one */
export function Choice({ id, label, name, value, choices, none, onChoose }) {
  const pairs = [...(none ? [["", none]] : []), ...choices.map((one) => (Array.isArray(one) ? one : [one, one]))];
  return (
    <>
      {label && <label for={id}>{label}</label>}{" "}
      <select id={id} aria-label={name} value={value} onChange={(event) => onChoose(event.target.value)}>
        {pairs.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
      </select>{" "}
    </>
  );
}

/* A row of buttons, of which one is pressed.  choices: pairs of a value and a text */
export const Toggles = ({ id, name, value, choices, onChoose }) => (
  <div id={id} class="tabs" role="group" aria-label={name}>
    {choices.map(([key, text]) => (
      <button key={key} type="button" aria-pressed={key === value} onClick={() => onChoose(key)}>{text}</button>
    ))}
  </div>
);
