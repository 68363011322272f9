// The tiles of one account, partition, GPU type or size; everything else stays with all jobs and says so.
const stored = element("strata") && JSON.parse(element("strata").textContent);

function fillStrata() {
  const select = element("stratum");
  if (!select || !Object.keys(stored?.groups ?? {}).length) return;
  for (const [by, strata] of Object.entries(stored.groups)) {
    const group = select.appendChild(made("optgroup", {label: by}));
    for (const name of Object.keys(strata)) group.append(new Option(name, JSON.stringify([by, name])));
  }
  // A reload may bring back the choice, but not what it showed.
  select.value = "";
  select.closest("label").hidden = false;
  select.addEventListener("change", () => showStratum(select.value && JSON.parse(select.value)));
}

const asBuilt = new Map();
function showStratum(chosen) {
  hideCard();
  for (const [tile, {classes, html}] of asBuilt) {
    tile.className = classes;
    tile.innerHTML = html;
  }
  const tiles = chosen ? stored.groups[chosen[0]][chosen[1]] : {};
  for (const [name, told] of Object.entries(tiles)) {
    const tile = document.querySelector(`.tile[data-tile="${CSS.escape(name)}"]`);
    if (tile) fillTile(tile, told);
  }
  document.documentElement.toggleAttribute("data-stratum", Boolean(chosen));
  say(chosen ? `Shown for ${chosen[0]} ${chosen[1]}: ${Object.keys(tiles).length} tiles. All else is of all jobs.` : "Shown for all jobs.");
  reachNumbers();
}

function fillTile(tile, {value, unit, interval, badge, state, means}) {
  if (!asBuilt.has(tile)) asBuilt.set(tile, {classes: tile.className, html: tile.innerHTML});
  tile.className = `tile of-stratum ${["shown", "few", "withheld"].includes(state) ? state : "shown"}`;
  for (const part of tile.querySelectorAll(".mini, .target, .badge")) part.remove();
  tile.querySelector(".value").replaceChildren(made("b", {}, value), " ", made("span", {}, unit ?? ""));
  tile.querySelector(".ci")?.remove();
  if (interval) tile.querySelector(".value").after(made("p", {class: "ci"}, interval));
  tile.querySelector(".means").textContent = means ?? "";
  if (badge) tile.querySelector("h2").append(" ", made("span", {class: "badge"}, badge));
}
fillStrata();
