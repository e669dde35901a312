/* The colour theme, light or dark: the system's, until the user chooses one. */
import { signal } from "@preact/signals";

const KEY = "mccfr-theme";
const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const shown = () => root.dataset.theme || (system.matches ? "dark" : "light");

export const theme = signal(shown());
system.addEventListener("change", () => { theme.value = shown(); });

export function turnTheme() {
  root.dataset.theme = theme.value = shown() === "dark" ? "light" : "dark";
  try { localStorage.setItem(KEY, theme.value); } catch { /* storage is blocked: the choice ends with the page */ }
}
export function restoreTheme() {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept) root.dataset.theme = theme.value = kept;
  } catch { /* storage is blocked: use the system's theme */ }
}
