// Figures: save their data and drawings, or explore them. Vega is loaded at the first exploration.
let packedCharts;

// Undoes scripts/ttf/page/render/packing.py.
function unpackSpec(spec) {
  const rowsOf = ({rows, columns}) => Array.from({length: rows}, (_, row) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]]).filter(([, value]) => value !== null)));
  const datasets = Object.entries(spec.datasets ?? {}).map(([name, packed]) => [name, rowsOf(packed)]);
  return {...spec, datasets: Object.fromEntries(datasets)};
}

// Inflate a compressed text of the page.
async function inflate(store) {
  const bytes = Uint8Array.from(atob(store.textContent.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

async function specOf(figure) {
  packedCharts ??= JSON.parse(await inflate(element("charts-packed")));
  return unpackSpec(packedCharts[figure.dataset.chart]);
}
const CONFIG = {background: null, font: "Arial, sans-serif"};
const figureOf = (button) => button.closest(".figure");
const shownDrawing = (figure) => [...figure.querySelectorAll(".drawing")].find((drawing) => drawing.checkVisibility());

DO["vega-lite"] = async (button) => {
  const figure = figureOf(button), spec = await specOf(figure);
  const whole = {$schema: "https://vega.github.io/schema/vega-lite/v6.json", config: CONFIG, ...spec};
  download(figure.dataset.chart + ".vl.json", "application/json", JSON.stringify(whole, null, 1) + "\n");
};

// The rows of all datasets of a chart; with several, a first column numbers the dataset.
async function chartCsv(figure) {
  const parts = Object.values((await specOf(figure)).datasets ?? {});
  const rows = parts.flatMap((part, at) => part.map((row) => (parts.length > 1 ? {part: at + 1, ...row} : row)));
  const names = [...new Set(rows.flatMap(Object.keys))];
  return csvOf([names, ...rows.map((row) => names.map((name) => row[name]))]);
}

// Drawings use the colours of the light theme, so they are saved on white.
function exportDrawing(figure) {
  const svg = shownDrawing(figure).querySelector("svg").cloneNode(true);
  const [x, y, width, height] = svg.getAttribute("viewBox").split(/[ ,]+/);
  const whole = {xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": "Liberation Sans, Arial, sans-serif"};
  for (const [name, value] of Object.entries(whole)) svg.setAttribute(name, value);
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({x, y, width, height, fill: "white"})) background.setAttribute(name, value);
  // <title> must stay the first child.
  svg.querySelector(":scope > :not(title, desc)")?.before(background);
  return {width: Number(width), height: Number(height), text: new XMLSerializer().serializeToString(svg)};
}
DO.svg = (button) => {
  const figure = figureOf(button);
  download(figure.dataset.chart + ".svg", "image/svg+xml", exportDrawing(figure).text);
};

// At twice the size, for slides.
DO.png = async (button) => {
  const figure = figureOf(button), {width, height, text} = exportDrawing(figure), image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
  await image.decode();
  const canvas = makeElement("canvas", {width: 2 * width, height: 2 * height});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(figure.dataset.chart + ".png", "image/png", blob));
};

DO.cite = (button) => {
  const figure = figureOf(button);
  copy(makeCitation(figure.querySelector(".title").textContent.trim(), figure.id), button);
};

// The program is stored in the page as text.
let vegaReady;
async function loadVega() {
  const text = await inflate(element("vega-program"));
  const script = document.createElement("script");
  // In a function, so that its names stay local.
  script.textContent = `(() => {${text}\n})();`;
  document.head.append(script);
}

const exploredFigures = new WeakMap();
DO.explore = async (button) => {
  const figure = figureOf(button), active = exploredFigures.get(figure);
  if (active) {
    active.view.finalize();
    active.drawing.remove();
    exploredFigures.delete(figure);
    figure.classList.remove("explored");
    button.setAttribute("aria-pressed", "false");
    return;
  }
  if (button.disabled) return;
  button.disabled = true;
  const drawing = makeElement("div", {class: "drawing live", tabindex: 0, role: "group", "aria-label": "Interactive chart"});
  try {
    await (vegaReady ??= loadVega());
    shownDrawing(figure).after(drawing);
    const options = {mode: "vega-lite", renderer: "svg", actions: false, ast: false};
    const spec = await specOf(figure);
    const {view} = await window.vegaEmbed(drawing, withTooltips(spec), {...options, config: CONFIG});
    figure.classList.add("explored");
    button.setAttribute("aria-pressed", "true");
    exploredFigures.set(figure, {view, drawing});
  } catch (error) {
    drawing.remove();
    announce("This chart could not be drawn: " + error.message);
  } finally {
    button.disabled = false;
  }
};

// Add a tooltip with the row to every mark without one.
function withTooltips(node) {
  if (Array.isArray(node)) return node.map(withTooltips);
  if (node === null || typeof node !== "object") return node;
  const result = Object.fromEntries(Object.entries(node)
    .map(([name, value]) => [name, ["data", "datasets", "params"].includes(name) ? value : withTooltips(value)]));
  if (node.mark && !node.encoding?.tooltip && node.mark.tooltip === undefined) {
    result.mark = {...(typeof node.mark === "string" ? {type: node.mark} : node.mark), tooltip: true};
  }
  return result;
}

// A drawing that is wider than its container must be scrollable by keyboard.
const resizeObserver = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    if (target.scrollWidth <= target.clientWidth + 1) continue;
    const title = target.closest(".figure").querySelector(".title")?.textContent ?? "Chart";
    for (const [name, value] of [["tabindex", 0], ["role", "group"], ["aria-label", title]]) target.setAttribute(name, value);
  }
});
for (const drawing of document.querySelectorAll(".drawing.wide")) resizeObserver.observe(drawing);
