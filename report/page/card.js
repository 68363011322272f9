// The card of a number: key, exact value, n, interval, source and description, from the row of that key; in a fold the
// file of its sentence.
// A non-modal dialog: hover and focus show it, a click or Enter moves the focus into it.
const NUMBER = "data[data-key]";
let card, activeNumber, hoverTimer, isReturning = false;

function rowOf(number) {
  const key = number?.dataset.key;
  return key && !key.includes(":") ? element("m:" + key) : null;
}

// The attribute exists only if the exact value differs from the cell text.
const exactText = (row) => row.dataset.v ?? row.cells[1].textContent;

function collectFacts(row) {
  const [, , unit, n, source] = [...row.cells].map((cell) => cell.textContent.trim());
  const {low, high, ci} = row.dataset, index = row.dataset.description;
  const description = index && element("number-descriptions")?.children[index].textContent;
  const facts = [["Key", makeElement("code", {}, row.id.slice(2))], ["Exact value", exactText(row)], ["n", n],
    [`Interval${ci ? `, ${ci}` : ""}`, low && `${low} to ${high || "∞"}`], ["Source", source], ["Description", description]];
  return {unit, n, facts: facts.filter(([, fact]) => fact && fact !== "–")};
}

// The last mark before the number; a chart is drawn elsewhere.
function fileOf(number) {
  const marks = number.closest("figure") ? [] : [...document.querySelectorAll("[data-file]")];
  return marks.findLast((mark) => mark.compareDocumentPosition(number) & Node.DOCUMENT_POSITION_FOLLOWING)?.dataset.file;
}

function showCard(number) {
  clearTimeout(hoverTimer);
  const row = rowOf(number);
  if (!row || number === activeNumber) return;
  if (!card) {
    card = document.body.appendChild(makeElement("div", {class: "number-card", role: "dialog", "aria-label": "About this number", tabindex: -1}));
    card.addEventListener("mouseenter", () => clearTimeout(hoverTimer));
    card.addEventListener("mouseleave", () => card.contains(document.activeElement) || hideSoon());
  }
  const {unit, facts} = collectFacts(row), file = fileOf(number);
  const buttons = [["copy-value", "Copy value"], ["copy-link", "Copy link"], ["copy-citation", "Copy citation"]]
    .map(([action, words]) => makeElement("button", {type: "button", "data-do": action}, words));
  card.replaceChildren(
    makeElement("header", {}, makeElement("b", {}, number.textContent), makeElement("span", {class: "badge"}, unit)),
    makeElement("dl", {}, ...facts.map(([name, fact]) => makeElement("div", {}, makeElement("dt", {}, name), makeElement("dd", {}, fact)))),
    ...(file ? [makeElement("details", {}, makeElement("summary", {}, "File of the sentence"), makeElement("code", {}, file))] : []),
    makeElement("div", {class: "do"}, ...buttons));
  activeNumber?.removeAttribute("aria-expanded");
  activeNumber = number;
  number.setAttribute("aria-expanded", "true");
  card.hidden = false;
  placeCard(number.getBoundingClientRect());
}

// Below the number, or above it if there is no room below; on a phone at the foot of the screen (CSS).
function placeCard(box) {
  const width = document.documentElement.clientWidth;
  const isAbove = box.bottom + card.offsetHeight + 8 > innerHeight && box.top > card.offsetHeight + 8;
  card.style.left = `${scrollX + Math.max(8, Math.min(box.left - 12, width - card.offsetWidth - 8))}px`;
  card.style.top = `${scrollY + (isAbove ? box.top - card.offsetHeight - 6 : box.bottom + 6)}px`;
}

function hideCard(returnsFocus = false) {
  clearTimeout(hoverTimer);
  if (!activeNumber) return;
  const number = activeNumber;
  activeNumber = null;
  card.hidden = true;
  number.removeAttribute("aria-expanded");
  // Focus that returns from the card must not open it again.
  isReturning = returnsFocus;
  if (returnsFocus) number.focus({preventScroll: true});
  isReturning = false;
}

function hideSoon() {
  clearTimeout(hoverTimer);
  hoverTimer = setTimeout(hideCard, 250);
}

function enterCard(number) {
  showCard(number);
  card?.querySelector("button")?.focus({preventScroll: true});
}

document.addEventListener("mouseover", (event) => {
  const number = event.target.closest?.(NUMBER);
  if (!number || number === activeNumber || card?.contains(document.activeElement)) return;
  clearTimeout(hoverTimer);
  hoverTimer = setTimeout(showCard, 350, number);
});
document.addEventListener("mouseout", (event) => {
  if (event.target.closest?.(NUMBER) && !card?.contains(document.activeElement)) hideSoon();
});
document.addEventListener("focusin", (event) => {
  const number = event.target.closest?.(NUMBER);
  if (isReturning) return;
  if (number?.matches(":focus-visible")) showCard(number);
  else if (!number && !card?.contains(event.target)) hideCard();
});
document.addEventListener("click", (event) => {
  const number = event.target.closest?.(NUMBER);
  // A click in a link, a sortable heading or a fold line belongs to that element.
  if (number && !number.closest("a, button, summary")) enterCard(number);
  else if (!card?.contains(event.target)) hideCard();
  else if (event.target.closest("a")) hideCard();
});
document.addEventListener("keydown", (event) => {
  const number = event.target.closest?.(NUMBER), inside = card?.contains(event.target);
  if (event.key === "Escape" && activeNumber) hideCard(inside);
  else if (number && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); enterCard(number); }
  else if (inside && event.key === "Tab") {
    // Leaving the card returns to the number.
    const stops = [...card.querySelectorAll("a, button, summary")];
    if (event.target === (event.shiftKey ? stops[0] : stops.at(-1))) { event.preventDefault(); hideCard(true); }
  }
});

const keyShown = () => activeNumber.dataset.key;
DO["copy-value"] = (button) => copy(exactText(rowOf(activeNumber)), button);
DO["copy-link"] = (button) => copy(addressOf("m:" + keyShown()), button);
DO["copy-citation"] = (button) => {
  const row = rowOf(activeNumber), {unit, n} = collectFacts(row);
  const description = [unit, n && n !== "–" && `n = ${n}`].filter(Boolean).join(", ");
  copy(makeCitation(`${keyShown()} = ${exactText(row)}${description && ` (${description})`}`, "m:" + keyShown()), button);
};

// Make thousands of numbers focusable by keyboard, in idle time.
function makeFocusable() {
  const numbers = document.querySelectorAll(NUMBER);
  let at = 0;
  runWhenIdle(() => {
    const number = numbers[at++];
    if (number && rowOf(number) && !number.closest("a, button, summary")) {
      for (const [name, value] of [["tabindex", 0], ["role", "button"], ["aria-haspopup", "dialog"]]) number.setAttribute(name, value);
    }
    return at < numbers.length;
  });
}
makeFocusable();
