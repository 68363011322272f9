// Mark the current place in the contents; navigate by links and keys.
const entries = [...document.querySelectorAll('.contents a[href^="#"]')];
const places = [...new Set(entries.map((entry) => element(entry.hash.slice(1))))].filter(Boolean);

function markPlace(place) {
  for (const entry of entries) {
    if (entry.hash === "#" + place.id) entry.setAttribute("aria-current", "true");
    else entry.removeAttribute("aria-current");
  }
}

// Mark the last place that has reached the upper third of the window. A chosen place stays marked until the reader
// scrolls, because the last places of a page cannot reach that third.
const visiblePlaces = new Set();
let chosenPlace = null;
function updateMark(changes) {
  for (const {target, isIntersecting} of changes) visiblePlaces[isIntersecting ? "add" : "delete"](target);
  const place = chosenPlace ?? places.findLast((candidate) => visiblePlaces.has(candidate));
  if (place) markPlace(place);
}
const observer = new IntersectionObserver(updateMark, {rootMargin: "-20% 0px -65% 0px"});
for (const place of places) observer.observe(place);
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
  addEventListener(kind, () => { chosenPlace = null; }, {passive: true, capture: true});
}

// Open the folds around the target of an address, and show a row that the filter hides.
function openAddress(hash = location.hash) {
  let name = hash.slice(1).split("?")[0];
  try { name = decodeURIComponent(name); } catch { /* A literal percent sign. */ }
  const place = element(name);
  if (!place) return;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (place.hidden) clearFilter();
  chosenPlace = places.findLast((candidate) => candidate.contains(place)) ?? null;
  if (chosenPlace) markPlace(chosenPlace);
  place.scrollIntoView({block: place.tagName === "TR" ? "center" : "start"});
}
addEventListener("hashchange", () => openAddress());
// A click on the current address triggers no hashchange.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (!link) return;
  link.closest(".menu")?.removeAttribute("open");
  if (link.hash === location.hash) openAddress();
});
if (location.hash) {
  openAddress();
  // Heights are final only after the layout.
  addEventListener("load", () => openAddress());
}

document.addEventListener("keydown", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (event.key === "Escape" && menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (!"jk".includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, select, textarea, [contenteditable]")) return;
  const sections = [...document.querySelectorAll("main > section[id]")];
  const margin = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  const tops = sections.map((section) => section.getBoundingClientRect().top - margin);
  const index = event.key === "j" ? tops.findIndex((top) => top > 30) : tops.findLastIndex((top) => top < -4);
  const next = sections[index];
  if (!next) return;
  next.tabIndex = -1;
  next.focus({preventScroll: true});
  next.scrollIntoView();
  chosenPlace = places.includes(next) ? next : null;
  if (chosenPlace) markPlace(next);
});
document.addEventListener("click", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

// One fold per frame, so that the page stays responsive.
DO["open-all"] = () => {
  const folds = [...document.querySelectorAll("main details:not(.ways)")];
  const open = folds.some((fold) => !fold.open);
  for (const button of document.querySelectorAll("[data-do=open-all]")) button.textContent = open ? "Close all details" : "Open all details";
  (function next() {
    const fold = folds.shift();
    if (!fold) return;
    fold.open = open;
    requestAnimationFrame(next);
  })();
};
