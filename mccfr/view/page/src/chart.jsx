/* Charts drawn by uPlot in the theme's colours, as wide as their container. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "./theme.js";

const HEIGHT = 240;
/* Return the computed CSS colour of a class such as raise-3 or call-fill, for a canvas. */
export function colourOf(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name.replace("-fill", "")})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/* A chart.  label: text for screen readers; options(): uPlot's options without width and height; data: uPlot's columns */
export function Chart({ id, label, options, data }) {
  const box = useRef(null);
  useEffect(() => {
    const room = box.current; // box.current is null after unmounting, when the observer may still call size()
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
/* The legend of a chart.  keys: pairs of a CSS class and a name */
export const Legend = ({ keys }) => (
  <p class="quiet">{keys.map(([colour, name]) => <span key={name}><i class={`key ${colour}`} /> {name} </span>)}</p>
);

/* Return the labels of an axis of shares, in percent. */
export const percents = (_, ticks) => ticks.map((tick) => `${Math.round(100 * tick)} %`);
export const WIDE = 56; // width in pixels of an axis with labels up to 100 %
/* Return uPlot's options of an axis in the theme's colours.  more: further options */
export const axis = (more) => ({
  stroke: colourOf("quiet"),
  grid: { stroke: colourOf("rule"), width: 1 },
  ticks: { stroke: colourOf("rule"), width: 1 },
  ...more,
});
