// Where one is in the page, and how one gets elsewhere.
const entries = [...document.querySelectorAll('.contents a[href^="#"]')];
const places = [...new Set(entries.map((entry) => element(entry.hash.slice(1))))].filter(Boolean);

function markPlace(place) {
  for (const entry of entries) {
    if (entry.hash === "#" + place.id) entry.setAttribute("aria-current", "true");
    else entry.removeAttribute("aria-current");
  }
}

// The last place that has reached the upper third of the window; one that was chosen stays marked until one scrolls,
// since the last ones of the page can't get there.
const inSight = new Set();
let chosen = null;
function spy(seen) {
  for (const {target, isIntersecting} of seen) inSight[isIntersecting ? "add" : "delete"](target);
  const place = chosen ?? places.findLast((one) => inSight.has(one));
  if (place) markPlace(place);
}
const observer = new IntersectionObserver(spy, {rootMargin: "-20% 0px -65% 0px"});
for (const place of places) observer.observe(place);
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
  addEventListener(kind, () => { chosen = null; }, {passive: true, capture: true});
}

// Every address opens what it lies in: folds, and a row that the filter hides.
function follow(hash = location.hash) {
  let name = hash.slice(1).split("?")[0];
  try { name = decodeURIComponent(name); } catch { /* A percent sign that means itself. */ }
  const place = element(name);
  if (!place) return;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (place.hidden) clearFilter();
  chosen = places.findLast((one) => one.contains(place)) ?? null;
  if (chosen) markPlace(chosen);
  place.scrollIntoView({block: place.tagName === "TR" ? "center" : "start"});
}
addEventListener("hashchange", () => follow());
// The same address once more is no change of it.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (!link) return;
  link.closest(".menu")?.removeAttribute("open");
  if (link.hash === location.hash) follow();
});
if (location.hash) {
  follow();
  // What is folded, and how high, is known only when all is laid out.
  addEventListener("load", () => follow());
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
  const at = event.key === "j" ? tops.findIndex((top) => top > 30) : tops.findLastIndex((top) => top < -4);
  const next = sections[at];
  if (!next) return;
  next.tabIndex = -1;
  next.focus({preventScroll: true});
  next.scrollIntoView();
  chosen = places.includes(next) ? next : null;
  if (chosen) markPlace(next);
});
document.addEventListener("click", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

// One fold after another, so that the page answers in between.
DO["open-all"] = () => {
  const folds = [...document.querySelectorAll("main details.details")];
  const open = folds.some((fold) => !fold.open);
  for (const button of document.querySelectorAll("[data-do=open-all]")) button.textContent = open ? "Close all details" : "Open all details";
  (function next() {
    const fold = folds.shift();
    if (!fold) return;
    fold.open = open;
    requestAnimationFrame(next);
  })();
};
