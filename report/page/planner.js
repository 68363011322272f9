// The planner: expectations for a run by the exact renewal formula, explained in scripts/ttf/stats/large_runs/ettr.py.

// (e^x - 1) / x, which is 1 at 0.
const exprel = (x) => (x === 0 ? 1 : Math.expm1(x) / x);

// Mean times (s) of a run, from rate (failures per s of scheduled time), interval, write, restart, queue and work (s).
function expectedTimes({rate, interval, write, restart, queue, work}) {
  // The factor avoids an empty last piece if the interval divides the work up to rounding.
  const pieces = Math.ceil((work / interval) * (1 - 1e-12)), period = interval + write;
  const last = work - (pieces - 1) * interval + write;
  const whole = pieces > 1 ? (pieces - 1) * period * exprel(rate * period) : 0;
  const scheduled = restart * exprel(rate * restart) + Math.exp(rate * restart) * (whole + last * exprel(rate * last));
  const interruptions = rate * scheduled;
  const queued = queue + (queue && queue * interruptions), wall = queued + scheduled;
  return {scheduled, interruptions, queued, wall, ettr: work / wall, share: work / scheduled, writes: pieces * write};
}

// The interval with the highest ETTR in long runs, (1 + W(-e^(-1 - load))) / rate with Lambert's W, that is y / rate
// with 1 - e^-(y + load) = y. Newton's method starts from the series for small loads, which is exact enough below 1e-6.
function bestInterval(rate, write) {
  if (rate === 0) return write > 0 ? Infinity : NaN;
  const load = rate * write, root = Math.sqrt(2 * load);
  let y = Math.min(root - root ** 2 / 3 + root ** 3 / 36, 1);
  for (let step = 0; load >= 1e-6 && step < 50; step++) {
    const slope = Math.expm1(-(y + load));
    y += (slope + y) / slope;
  }
  return y / rate;
}

// Share of the time in which a run on randomly drawn nodes + spares has more nodes down than spares. shares: the shares
// of the time with 0, 1, 2 ... of all units down, each a hypergeometric distribution. NaN if there are too few units.
function shortageShare(shares, units, nodes, spares) {
  const drawn = nodes + spares, ln = [0];
  if (drawn > units) return NaN;
  for (let n = 1; n <= units; n++) ln.push(ln[n - 1] + Math.log(n));
  const logWays = (n, k) => (k < 0 || k > n ? -Infinity : ln[n] - ln[k] - ln[n - k]);
  return shares.reduce((sum, share, down) => {
    let enough = 0;
    for (let k = 0; k <= Math.min(spares, down); k++) enough += Math.exp(logWays(down, k) + logWays(units - down, drawn - k) - logWays(units, drawn));
    return sum + share * Math.max(1 - enough, 0);
  }, 0);
}

// The fields: conversion to the formula's units, and the bounds of the logarithmic slider.
const FIELDS = {
  gpus: {unit: 1, from: 1, to: 131_072, isPositive: true},
  rate: {unit: 1 / 86_400_000, from: 0.1, to: 1000},
  interval: {unit: 60, from: 1, to: 1440, isPositive: true},
  write: {unit: 60, from: 0.1, to: 60},
  restart: {unit: 60, from: 0.1, to: 120},
  queue: {unit: 86_400, from: 0.001, to: 100},
  work: {unit: 86_400, from: 0.1, to: 365, isPositive: true},
  spares: {unit: 1, from: 1, to: 1000}, // only if the number of nodes down at once is known
};
const STEPS = 1000;
const UNITS = [["s", 1, 60], ["min", 60, 3600], ["h", 3600, 172_800], ["d", 86_400, 63_115_200], ["years", 31_557_600, Infinity]];

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const threeDigits = (value) => (Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : Math.round(value).toLocaleString("en"));
const timeUnit = (seconds) => UNITS.find(([, , until]) => seconds < until) ?? UNITS.at(-1);
function formatTime(seconds) {
  if (!Number.isFinite(seconds)) return Number.isNaN(seconds) ? "–" : "never";
  const [unit, size] = timeUnit(seconds);
  return `${threeDigits(seconds / size)}\u00a0${unit}`;
}

// The plan in the formula's units; null if a field is empty or invalid, which marks the field.
function readPlan(form) {
  const plan = {};
  for (const [name, {unit, isPositive}] of Object.entries(FIELDS)) {
    const input = form.elements[name], value = input?.valueAsNumber;
    if (!input) continue;
    plan[name] = value * unit;
    const isValid = Number.isFinite(value) && (isPositive ? value > 0 : value >= 0);
    if (isValid || input.value === "") input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
    if (!isValid) plan.blank = true;
  }
  plan.rate *= Math.ceil(plan.gpus / (Number(form.dataset.nodeGpus) || 1));
  return plan.blank ? null : plan;
}

// Needs no failure rate, only how many nodes were down.
function shortageText(form) {
  const [gpus, spares] = ["gpus", "spares"].map((name) => form.elements[name].valueAsNumber);
  const nodes = Math.ceil(gpus / (Number(form.dataset.nodeGpus) || 1));
  const share = shortageShare(JSON.parse(form.dataset.down), Number(form.dataset.units), nodes, Math.floor(spares));
  return gpus > 0 && spares >= 0 && !Number.isNaN(share) ? percent(share) : "–";
}

function showPlan(form) {
  const plan = readPlan(form), times = plan && expectedTimes(plan), best = plan && bestInterval(plan.rate, plan.write);
  const answers = plan && {ettr: percent(times.ettr), scheduled: percent(times.share), wall: formatTime(times.wall),
    interruptions: threeDigits(times.interruptions), mttf: formatTime(1 / plan.rate), best: formatTime(best)};
  for (const output of form.querySelectorAll(".answers output")) output.value = answers?.[output.name] ?? "–";
  if (form.dataset.down) form.elements.short.value = shortageText(form);
  showTime(form, plan, times);
  form.querySelector(".curve").replaceChildren(...(plan ? drawCurve(plan, times, best) : []));
  const isBeyond = plan && plan.gpus > Number(form.dataset.largest);
  form.querySelector(".beyond")?.remove();
  if (isBeyond) form.querySelector(".assumes").append(makeElement("b", {class: "beyond"}, " A projection."));
}

function showTime(form, plan, times) {
  const parts = times && Number.isFinite(times.wall) ? [["work", "productive", plan.work], ["write", "checkpoint writes", times.writes],
    ["lost", "restart and lost work", Math.max(times.scheduled - plan.work - times.writes, 0)], ["queue", "queue", times.queued]] : [];
  form.querySelector(".timebar").replaceChildren(...parts.map(([kind, , time]) =>
    makeElement("span", {class: `of-${kind}`, style: `width: ${(100 * time) / times.wall}%`})));
  // All times in the unit of the total.
  const [unit, size] = timeUnit(times?.wall ?? 0), short = (value) => (value < 10 ? String(Number(value.toPrecision(2))) : Math.round(value).toLocaleString("en"));
  form.querySelector(".timekey").replaceChildren(...parts.map(([kind, words, time]) =>
    makeElement("span", {}, makeElement("i", {class: `of-${kind}`}), `${words} `, makeElement("b", {}, `${short(time / size)}\u00a0${unit}`))));
}

// Productive share of the scheduled time by interval, from a minute to a day, with the planned and the best interval.
function drawCurve(plan, times, best) {
  const [left, right, top, bottom] = [44, 530, 14, 116], from = Math.log(60), to = Math.log(86_400);
  const x = (interval) => left + ((right - left) * (Math.log(interval) - from)) / (to - from);
  const y = (share) => bottom - (bottom - top) * share;
  const svg = (tag, attributes, text = "") => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    return node;
  };
  const words = (at, height, text, anchor, weight = 400) =>
    svg("text", {x: at, y: height, "text-anchor": anchor, "font-size": 12.5, "font-weight": weight, fill: `var(--ink${weight > 400 ? "" : "-2"})`}, text);
  const line = (x1, y1, x2, y2, colour) => svg("line", {x1, y1, x2, y2, stroke: `var(--${colour})`});
  const points = Array.from({length: 81}, (_, n) => Math.exp(from + ((to - from) * n) / 80))
    .map((interval) => `${x(interval).toFixed(1)},${y(expectedTimes({...plan, interval}).share).toFixed(1)}`);
  const within = (interval) => interval >= 60 && interval <= 86_400;
  const picture = svg("svg", {viewBox: "0 0 560 140", role: "img", "aria-label": `Now ${percent(times.share)}; best at ${formatTime(best)}`});
  picture.append(
    ...[0, 0.5, 1].flatMap((share) => [line(left, y(share), right, y(share), "c-open"), words(left - 6, y(share) + 4, `${100 * share}%`, "end")]),
    ...[[60, "1 min"], [600, "10 min"], [3600, "1 h"], [21_600, "6 h"], [86_400, "1 d"]].map(([at, text]) => words(x(at), 135, text, "middle")));
  if (within(best)) {
    const isBeyond = x(best) > 420;
    picture.append(line(x(best), y(expectedTimes({...plan, interval: best}).share), x(best), bottom, "axis"),
      words(x(best) + (isBeyond ? -5 : 5), bottom - 6, `best ${formatTime(best)}`, isBeyond ? "end" : "start"));
  }
  picture.append(svg("polyline", {points: points.join(" "), fill: "none", stroke: "var(--c-success)", "stroke-width": 2}));
  if (within(plan.interval)) {
    const [at, height] = [x(plan.interval), y(times.share)];
    picture.append(svg("circle", {cx: at, cy: height, r: 4.5, fill: "var(--c-success)"}),
      words(at + (at < 120 ? 8 : -8), height > 90 ? height - 10 : height + 18, `now ${percent(times.share)}`, at < 120 ? "start" : "end", 650));
  }
  return [makeElement("figcaption", {}, "Productive share of scheduled time, by checkpoint interval"), picture];
}

// A slider below a field; its lower end is 0 if the field allows 0.
function addSlider(input, changed) {
  const {from, to, isPositive} = FIELDS[input.name], field = input.closest(".field");
  const label = field.querySelector("label").textContent.trim();
  const slider = field.appendChild(makeElement("input", {type: "range", min: 0, max: STEPS, "aria-label": `${label}, slider`}));
  slider.addEventListener("input", () => {
    const value = from * (to / from) ** (slider.value / STEPS);
    const short = input.name === "gpus" || input.name === "spares" ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(3));
    input.value = !isPositive && slider.value === "0" ? 0 : short;
    changed();
  });
  return () => {
    const value = input.valueAsNumber;
    slider.value = value > 0 ? (STEPS * Math.log(value / from)) / Math.log(to / from) : 0;
    slider.setAttribute("aria-valuetext", `${input.value} ${field.querySelector(".unit").textContent}`);
  };
}

// The address holds the state after the first change.
function startPlanner(form) {
  const inputs = Object.keys(FIELDS).map((name) => form.elements[name]).filter(Boolean), section = form.closest("section").id;
  const state = () => `${section}?${new URLSearchParams(inputs.map((input) => [input.name, input.value]))}`;
  const remember = debounce(400, () => history.replaceState(null, "", "#" + state()));
  const show = () => { showPlan(form); for (const place of sliders) place(); };
  const sliders = inputs.map((input) => addSlider(input, () => { show(); remember(); }));
  const fromAddress = () => {
    const [place, query] = location.hash.slice(1).split("?");
    if (place !== section || !query) return;
    for (const [name, value] of new URLSearchParams(query)) if (Object.hasOwn(FIELDS, name) && form.elements[name]) form.elements[name].value = value;
    show();
  };
  for (const input of inputs) input.addEventListener("input", () => { show(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { show(); history.replaceState(null, "", "#" + section); }));
  addEventListener("hashchange", fromAddress);
  DO["planner-link"] = (button) => copy(addressOf(state()), button);
  show();
  fromAddress();
}
if (element("planner")) startPlanner(element("planner"));
