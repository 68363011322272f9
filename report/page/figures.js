// Figures: what they are made of, to save or to explore. Vega is compiled at the first wish to explore.
let packedCharts;

// Undoes scripts/ttf/page/render/packing.py.
function unpacked(spec) {
  const rowsOf = ({rows, columns}) => Array.from({length: rows}, (_, row) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]]).filter(([, value]) => value !== null)));
  const datasets = Object.entries(spec.datasets ?? {}).map(([name, packed]) => [name, rowsOf(packed)]);
  return {...spec, datasets: Object.fromEntries(datasets)};
}

// What stands deflated in the page.
async function inflated(store) {
  const bytes = Uint8Array.from(atob(store.textContent.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

async function specOf(figure) {
  packedCharts ??= JSON.parse(await inflated(element("charts-packed")));
  return unpacked(packedCharts[figure.dataset.chart]);
}
const LOOK = {background: null, font: "Arial, sans-serif"};
const figureOf = (button) => button.closest(".figure");
const shownDrawing = (figure) => [...figure.querySelectorAll(".drawing")].find((drawing) => drawing.checkVisibility());

DO["vega-lite"] = async (button) => {
  const figure = figureOf(button), spec = await specOf(figure);
  const whole = {$schema: "https://vega.github.io/schema/vega-lite/v6.json", config: LOOK, ...spec};
  download(figure.dataset.chart + ".vl.json", "application/json", JSON.stringify(whole, null, 1) + "\n");
};

// The rows of all its parts under each other, which one they are of in the first column where there are several.
async function chartCsv(figure) {
  const parts = Object.values((await specOf(figure)).datasets ?? {});
  const rows = parts.flatMap((part, at) => part.map((row) => (parts.length > 1 ? {part: at + 1, ...row} : row)));
  const names = [...new Set(rows.flatMap(Object.keys))];
  return csvOf([names, ...rows.map((row) => names.map((name) => row[name]))]);
}

// The colours of a drawing are those of the light page: on white, whatever the page is now.
function pictureOf(figure) {
  const svg = shownDrawing(figure).querySelector("svg").cloneNode(true);
  const [x, y, width, height] = svg.getAttribute("viewBox").split(/[ ,]+/);
  const whole = {xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": "Liberation Sans, Arial, sans-serif"};
  for (const [name, value] of Object.entries(whole)) svg.setAttribute(name, value);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({x, y, width, height, fill: "white"})) paper.setAttribute(name, value);
  // A title has to come first.
  svg.querySelector(":scope > :not(title, desc)")?.before(paper);
  return {width: Number(width), height: Number(height), text: new XMLSerializer().serializeToString(svg)};
}
DO.svg = (button) => {
  const figure = figureOf(button);
  download(figure.dataset.chart + ".svg", "image/svg+xml", pictureOf(figure).text);
};

// At twice its size, for slides.
DO.png = async (button) => {
  const figure = figureOf(button), {width, height, text} = pictureOf(figure), image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
  await image.decode();
  const canvas = made("canvas", {width: 2 * width, height: 2 * height});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(figure.dataset.chart + ".png", "image/png", blob));
};

DO.cite = (button) => {
  const figure = figureOf(button);
  copy(cited(figure.querySelector(".title").textContent.trim(), figure.id), button);
};

// The program stands in the page as text.
let compiled;
async function program() {
  const text = await inflated(element("vega-program"));
  const script = document.createElement("script");
  // In a function, so that the names of the program stay its own.
  script.textContent = `(() => {${text}\n})();`;
  document.head.append(script);
}

const explored = new WeakMap();
DO.explore = async (button) => {
  const figure = figureOf(button), drawn = explored.get(figure);
  if (drawn) {
    drawn.view.finalize();
    drawn.drawing.remove();
    explored.delete(figure);
    figure.classList.remove("explored");
    button.setAttribute("aria-pressed", "false");
    return;
  }
  if (button.disabled) return;
  button.disabled = true;
  const drawing = made("div", {class: "drawing live", tabindex: 0, role: "group", "aria-label": "The chart, to point at"});
  try {
    await (compiled ??= program());
    shownDrawing(figure).after(drawing);
    const options = {mode: "vega-lite", renderer: "svg", actions: false, ast: false};
    const spec = await specOf(figure);
    const {view} = await window.vegaEmbed(drawing, withTooltips(spec), {...options, config: LOOK});
    figure.classList.add("explored");
    button.setAttribute("aria-pressed", "true");
    explored.set(figure, {view, drawing});
  } catch (error) {
    drawing.remove();
    say("This chart could not be drawn: " + error.message);
  } finally {
    button.disabled = false;
  }
};

// Every mark says what its row holds, where the chart itself does not say better.
function withTooltips(node) {
  if (Array.isArray(node)) return node.map(withTooltips);
  if (node === null || typeof node !== "object") return node;
  const copied = Object.fromEntries(Object.entries(node)
    .map(([name, value]) => [name, ["data", "datasets", "params"].includes(name) ? value : withTooltips(value)]));
  if (node.mark && !node.encoding?.tooltip && node.mark.tooltip === undefined) {
    copied.mark = {...(typeof node.mark === "string" ? {type: node.mark} : node.mark), tooltip: true};
  }
  return copied;
}

// A drawing wider than its room is scrolled, which has to be possible from the keyboard.
const rooms = new ResizeObserver((seen) => {
  for (const {target} of seen) {
    if (target.scrollWidth <= target.clientWidth + 1) continue;
    const title = target.closest(".figure").querySelector(".title")?.textContent ?? "Chart";
    for (const [name, value] of [["tabindex", 0], ["role", "group"], ["aria-label", title]]) target.setAttribute(name, value);
  }
});
for (const drawing of document.querySelectorAll(".drawing.wide")) rooms.observe(drawing);
