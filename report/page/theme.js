// Light, dark or system theme; print is always light.
const THEMES = ["auto", "light", "dark"];
let theme = "auto";
try { theme = localStorage.getItem("theme") ?? "auto"; } catch { /* Storage may be forbidden: auto. */ }

function showTheme() {
  if (!THEMES.includes(theme)) theme = "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-do=theme]")) button.textContent = `Theme: ${theme}`;
}
DO.theme = () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  try { localStorage.setItem("theme", theme); } catch { /* The theme lasts for this visit. */ }
  showTheme();
};
showTheme();
