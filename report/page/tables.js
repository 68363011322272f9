// Tables: sort by headings, filter, save.
const collator = new Intl.Collator("en", {numeric: true});
const asNumber = (text) => (/^[-+]?(\d|\.\d)[\d.]*(e[-+]?\d+)?$/i.test(text) ? Number(text) : NaN);
const textOf = (cell) => cell.dataset.v ?? cell.textContent.trim();
const SORTABLE = "table[data-name], #all-numbers";
// The rows of each body in original order, without the heading of the group.
const originalRows = new WeakMap();
const rowsOf = (body) => originalRows.get(body) ?? [...body.rows].filter((row) => row.cells[0]?.scope !== "rowgroup");

// Headings become buttons when their table is first visible.
function addSorting(table) {
  if (table.tHead?.querySelector("button") || ![...table.tBodies].some((body) => rowsOf(body).length > 2)) return;
  for (const heading of table.tHead?.rows[table.tHead.rows.length - 1].cells ?? []) {
    if (heading.colSpan === 1 && heading.textContent.trim()) {
      heading.append(makeElement("button", {type: "button", "data-do": "sort"}, ...heading.childNodes));
    }
  }
}
document.addEventListener("toggle", ({target}) => {
  if (target.open) for (const table of target.querySelectorAll(SORTABLE)) addSorting(table);
}, true);
for (const table of document.querySelectorAll(SORTABLE)) {
  if (!table.closest("details:not([open])")) addSorting(table);
}

// Ascending, descending, original. The sort is stable; blanks stay at the end.
function sortRows(rows, column, sign) {
  const cells = rows.map((row) => {
    const text = row.cells[column] ? textOf(row.cells[column]) : "";
    return {row, text, blank: text === "" || text === "–", value: asNumber(text.replaceAll(",", ""))};
  });
  const numbers = cells.every(({blank, value}) => blank || !Number.isNaN(value));
  for (const cell of cells) cell.words = cell.text.replace(/(\d),(?=\d{3})/g, "$1");
  const compare = numbers ? (a, b) => a.value - b.value : (a, b) => collator.compare(a.words, b.words);
  return cells.sort((a, b) => a.blank - b.blank || (a.blank ? 0 : sign * compare(a, b))).map(({row}) => row);
}

DO.sort = (button) => {
  const heading = button.closest("th"), table = heading.closest("table"), column = heading.cellIndex;
  const next = {ascending: "descending", descending: null}[heading.getAttribute("aria-sort") ?? ""];
  const order = next === undefined ? "ascending" : next;
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  if (order) heading.setAttribute("aria-sort", order);
  for (const body of table.tBodies) {
    if (!originalRows.has(body)) originalRows.set(body, rowsOf(body));
    body.append(...(order ? sortRows(rowsOf(body), column, order === "ascending" ? 1 : -1) : rowsOf(body)));
  }
};

// A spreadsheet would evaluate a text that starts like a formula.
function csvCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(asNumber(text))) text = "'" + text;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csvOf = (rows) => rows.map((row) => row.map(csvCell).join(",") + "\n").join("");

// In original order, whatever the sorting; the heading of a group of rows becomes a column.
function tableCsv(table) {
  const names = [...table.tHead.rows[table.tHead.rows.length - 1].cells].map((cell) => cell.dataset.name ?? cell.textContent.trim());
  const groups = [...table.tBodies].map((body) => {
    const heading = body.querySelector('[scope="rowgroup"]');
    return {name: heading && textOf(heading), rows: rowsOf(body)};
  });
  const grouped = groups.some(({name}) => name);
  const rows = groups.flatMap(({name, rows}) =>
    rows.map((row) => [...(grouped ? [name] : []), ...[...row.cells].map(textOf)]));
  return csvOf([[...(grouped ? ["group"] : []), ...names], ...rows]);
}

DO.csv = async (button) => {
  const figure = button.closest(".figure");
  if (figure) return download(figure.dataset.chart + ".csv", "text/csv", await chartCsv(figure));
  const table = button.closest(".table-figure").querySelector("table");
  return download(table.dataset.name + ".csv", "text/csv", tableCsv(table));
};

// The rows of all numbers in the form of metrics.json.
function metrics() {
  const plain = (text) => {
    if (text === undefined || text === "" || text === "–") return null;
    if (text === "true" || text === "false") return text === "true";
    const number = asNumber(text);
    return Number.isNaN(number) ? text : number;
  };
  return Object.fromEntries(rowsOf(element("all-numbers").tBodies[0]).map((row) => {
    const [, , unit, n, source] = [...row.cells].map((cell) => cell.textContent.trim());
    const {low, high} = row.dataset, v = exactText(row);
    const interval = low ? {low: plain(low), high: plain(high)} : {};
    // A label stays text, even "8".
    const value = plain(v);
    return [row.id.slice(2), {value: unit === "label" && typeof value === "number" ? v : value, unit, n: plain(n.replaceAll(",", "")), source, ...interval}];
  }));
}
const metricsJson = () => JSON.stringify(metrics(), null, 1) + "\n";
DO["metrics-json"] = () => download("metrics.json", "application/json", metricsJson());
DO["metrics-csv"] = () => {
  const rows = Object.entries(metrics()).map(([key, number]) => [key, number.value, number.unit, number.n, number.source, number.low, number.high]);
  download("metrics.csv", "text/csv", csvOf([["key", "value", "unit", "n", "source", "low", "high"], ...rows]));
};

const CRC = Uint32Array.from({length: 256}, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
const crc32 = (bytes) => ~bytes.reduce((sum, byte) => CRC[(sum ^ byte) & 255] ^ (sum >>> 8), -1) >>> 0;

// An uncompressed ZIP archive (APPNOTE 4.3): names in UTF-8, all dated 1 January 1980.
function makeZip(files) {
  const parts = [], directory = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [title, bytes] = [name, text].map((words) => new TextEncoder().encode(words));
    const header = [20, 0x800, 0, 0, 33, ...splitWords(crc32(bytes)), ...splitWords(bytes.length), ...splitWords(bytes.length), title.length, 0];
    parts.push(packWords(0x4b50, 0x0403, ...header), title, bytes);
    directory.push(packWords(0x4b50, 0x0201, 20, ...header, 0, 0, 0, 0, 0, ...splitWords(offset)), title);
    offset += 30 + title.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0), count = directory.length / 2;
  return [...parts, ...directory, packWords(0x4b50, 0x0605, 0, 0, count, count, ...splitWords(size), ...splitWords(offset), 0)];
}
const splitWords = (number) => [number & 0xffff, number >>> 16];
const packWords = (...numbers) => Uint8Array.from(numbers.flatMap((number) => [number & 255, number >>> 8]));

DO["all-tables"] = () => {
  const files = {"metrics.json": metricsJson()};
  for (const table of document.querySelectorAll("table[data-name]")) files[`tables/${table.dataset.name}.csv`] = tableCsv(table);
  download("tables.zip", "application/zip", ...makeZip(files));
};

// The filter of all numbers: a row must contain every word.
let searchTexts;
function filterNumbers() {
  const words = element("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  searchTexts ??= rowsOf(element("all-numbers").tBodies[0]).map((row) => [row, row.textContent.toLowerCase()]);
  let matchCount = 0;
  for (const [row, text] of searchTexts) {
    const matches = words.every((word) => text.includes(word));
    if (row.hidden === matches) row.hidden = !matches;
    matchCount += matches;
  }
  element("found").textContent = matchCount === 1 ? "1 value" : `${matchCount.toLocaleString("en")} values`;
}
function clearFilter() {
  if (!element("filter")) return;
  element("filter").value = "";
  filterNumbers();
}
element("filter")?.addEventListener("input", debounce(120, filterNumbers));
