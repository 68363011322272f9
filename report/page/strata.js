// Show the tiles of one account, partition, GPU type or size; everything else keeps describing all jobs and says so.
const stored = element("strata") && JSON.parse(element("strata").textContent);

function fillStrata() {
  const select = element("stratum");
  if (!select || !Object.keys(stored?.groups ?? {}).length) return;
  for (const [groupName, strata] of Object.entries(stored.groups)) {
    const group = select.appendChild(makeElement("optgroup", {label: groupName}));
    for (const name of Object.keys(strata)) group.append(new Option(name, JSON.stringify([groupName, name])));
  }
  // A reload may restore the choice, but not its tiles.
  select.value = "";
  select.closest("label").hidden = false;
  select.addEventListener("change", () => showStratum(select.value && JSON.parse(select.value)));
}

const originalTiles = new Map();
function showStratum(choice) {
  hideCard();
  for (const [tile, {classes, html}] of originalTiles) {
    tile.className = classes;
    tile.innerHTML = html;
  }
  const tiles = choice ? stored.groups[choice[0]][choice[1]] : {};
  for (const [name, parts] of Object.entries(tiles)) {
    const tile = document.querySelector(`.tile[data-tile="${CSS.escape(name)}"]`);
    if (tile) fillTile(tile, parts);
  }
  document.documentElement.toggleAttribute("data-stratum", Boolean(choice));
  announce(choice ? `Shown for ${choice[0]} ${choice[1]}: ${Object.keys(tiles).length} tiles. Everything else describes all jobs.` : "Shown for all jobs.");
  makeFocusable();
}

function fillTile(tile, {value, unit, interval, badge, state, means}) {
  if (!originalTiles.has(tile)) originalTiles.set(tile, {classes: tile.className, html: tile.innerHTML});
  tile.className = `tile of-stratum ${["shown", "few", "withheld"].includes(state) ? state : "shown"}`;
  for (const part of tile.querySelectorAll(".mini, .target, .badge")) part.remove();
  tile.querySelector(".value").replaceChildren(makeElement("b", {}, value), " ", makeElement("span", {}, unit ?? ""));
  tile.querySelector(".ci")?.remove();
  if (interval) tile.querySelector(".value").after(makeElement("p", {class: "ci"}, interval));
  tile.querySelector(".means").textContent = means ?? "";
  if (badge) tile.querySelector("h2").append(" ", makeElement("span", {class: "badge"}, badge));
}
fillStrata();
