/* Charts by uPlot, in the colours of the theme, as wide as there is room. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "./theme.js";

const HEIGHT = 240;
/* The colour of a class such as raise-3 or call-fill, as a canvas understands it. */
export function colourOf(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name.replace("-fill", "")})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/* label: what a screen reader says; options(): uPlot's, without the size; data: its columns */
export function Chart({ id, label, options, data }) {
  const box = useRef(null);
  useEffect(() => {
    const room = box.current; // null again after the view has gone, while an observer may still report
    const size = () => ({ width: room.clientWidth, height: HEIGHT });
    const chart = new uPlot({ legend: { show: false }, ...options(), ...size() }, data, room);
    const observer = new ResizeObserver(() => chart.setSize(size()));
    observer.observe(room);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [data, theme.value]);
  return <div id={id} ref={box} class="chart" role="img" aria-label={label} />;
}
/* What the colours of a chart stand for: pairs of a class and a name. */
export const Legend = ({ keys }) => (
  <p class="quiet">{keys.map(([colour, name]) => <span key={name}><i class={`key ${colour}`} /> {name} </span>)}</p>
);

/* The texts of an axis of shares. */
export const percents = (_, ticks) => ticks.map((tick) => `${Math.round(100 * tick)} %`);
export const WIDE = 56; // pixels beside a chart that hold 100 %
/* An axis in the theme's colours. */
export const axis = (more) => ({
  stroke: colourOf("quiet"),
  grid: { stroke: colourOf("rule"), width: 1 },
  ticks: { stroke: colourOf("rule"), width: 1 },
  ...more,
});
