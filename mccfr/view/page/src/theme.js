/* Light or dark: as the system has it, until the user chooses. */
import { signal } from "@preact/signals";

const KEY = "mccfr-theme";
const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const shown = () => root.dataset.theme || (system.matches ? "dark" : "light");

export const theme = signal(shown());
system.addEventListener("change", () => { theme.value = shown(); });

export function turnTheme() {
  root.dataset.theme = theme.value = shown() === "dark" ? "light" : "dark";
  try { localStorage.setItem(KEY, theme.value); } catch { /* it is not kept */ }
}
export function restoreTheme() {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept) root.dataset.theme = theme.value = kept;
  } catch { /* as the system has it */ }
}
