// The card of a number: its key, exact value, n, interval, source and method, which the row of that key holds.
// A dialog that leaves the rest of the page as it is: hovering and focus show it, a click or Enter goes into it.
const NUMBER = "data[data-key]";
let card, shownFor, waiting, returning = false;

function rowOf(number) {
  const key = number?.dataset.key;
  return key && !key.includes(":") ? element("m:" + key) : null;
}

// A value that stands in its cell as it is has no attribute of its own.
const exactOf = (row) => row.dataset.v ?? row.cells[1].textContent;

function factsOf(row) {
  const [, , unit, n, source] = [...row.cells].map((cell) => cell.textContent.trim());
  const {low, high, ci, what} = row.dataset;
  const about = what && element("what-numbers-are")?.children[what].textContent;
  const facts = [["Key", made("code", {}, row.id.slice(2))], ["Exact value", exactOf(row)], ["n", n],
    [`Interval${ci ? `, ${ci}` : ""}`, low && `${low} to ${high || "∞"}`], ["Source", source], ["What", about]];
  return {unit, n, facts: facts.filter(([, fact]) => fact && fact !== "–")};
}

function showCard(number) {
  clearTimeout(waiting);
  const row = rowOf(number);
  if (!row || number === shownFor) return;
  if (!card) {
    card = document.body.appendChild(made("div", {class: "number-card", role: "dialog", "aria-label": "About this number", tabindex: -1}));
    card.addEventListener("mouseenter", () => clearTimeout(waiting));
    card.addEventListener("mouseleave", () => card.contains(document.activeElement) || hideSoon());
  }
  const {unit, facts} = factsOf(row);
  const buttons = [["copy-value", "Copy value"], ["copy-link", "Copy link"], ["copy-citation", "Copy citation"]]
    .map(([does, words]) => made("button", {type: "button", "data-do": does}, words));
  card.replaceChildren(
    made("header", {}, made("b", {}, number.textContent), made("span", {class: "badge"}, unit)),
    made("dl", {}, ...facts.map(([name, fact]) => made("div", {}, made("dt", {}, name), made("dd", {}, fact)))),
    made("div", {class: "do"}, ...buttons));
  shownFor?.removeAttribute("aria-expanded");
  shownFor = number;
  number.setAttribute("aria-expanded", "true");
  card.hidden = false;
  placeCard(number.getBoundingClientRect());
}

// Below the number, or above it where there is no room below; a phone has it at the foot of the screen (CSS).
function placeCard(at) {
  const width = document.documentElement.clientWidth;
  const above = at.bottom + card.offsetHeight + 8 > innerHeight && at.top > card.offsetHeight + 8;
  card.style.left = `${scrollX + Math.max(8, Math.min(at.left - 12, width - card.offsetWidth - 8))}px`;
  card.style.top = `${scrollY + (above ? at.top - card.offsetHeight - 6 : at.bottom + 6)}px`;
}

function hideCard(back = false) {
  clearTimeout(waiting);
  if (!shownFor) return;
  const number = shownFor;
  shownFor = null;
  card.hidden = true;
  number.removeAttribute("aria-expanded");
  // Focus that comes back from the card does not open it again.
  returning = back;
  if (back) number.focus({preventScroll: true});
  returning = false;
}

function hideSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(hideCard, 250);
}

function intoCard(number) {
  showCard(number);
  card?.querySelector("button")?.focus({preventScroll: true});
}

document.addEventListener("mouseover", (event) => {
  const number = event.target.closest?.(NUMBER);
  if (!number || number === shownFor || card?.contains(document.activeElement)) return;
  clearTimeout(waiting);
  waiting = setTimeout(showCard, 350, number);
});
document.addEventListener("mouseout", (event) => {
  if (event.target.closest?.(NUMBER) && !card?.contains(document.activeElement)) hideSoon();
});
document.addEventListener("focusin", (event) => {
  const number = event.target.closest?.(NUMBER);
  if (returning) return;
  if (number?.matches(":focus-visible")) showCard(number);
  else if (!number && !card?.contains(event.target)) hideCard();
});
document.addEventListener("click", (event) => {
  const number = event.target.closest?.(NUMBER);
  // In a link, a heading that sorts or the line of a fold a click means that.
  if (number && !number.closest("a, button, summary")) intoCard(number);
  else if (!card?.contains(event.target)) hideCard();
  else if (event.target.closest("a")) hideCard();
});
document.addEventListener("keydown", (event) => {
  const number = event.target.closest?.(NUMBER), inside = card?.contains(event.target);
  if (event.key === "Escape" && shownFor) hideCard(inside);
  else if (number && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); intoCard(number); }
  else if (inside && event.key === "Tab") {
    // Out of the card one is back at the number.
    const stops = [...card.querySelectorAll("a, button")];
    if (event.target === (event.shiftKey ? stops[0] : stops.at(-1))) { event.preventDefault(); hideCard(true); }
  }
});

const keyShown = () => shownFor.dataset.key;
DO["copy-value"] = (button) => copy(exactOf(rowOf(shownFor)), button);
DO["copy-link"] = (button) => copy(addressOf("m:" + keyShown()), button);
DO["copy-citation"] = (button) => {
  const row = rowOf(shownFor), {unit, n} = factsOf(row);
  const about = [unit, n && n !== "–" && `n = ${n}`].filter(Boolean).join(", ");
  copy(cited(`${keyShown()} = ${exactOf(row)}${about && ` (${about})`}`, "m:" + keyShown()), button);
};

// Thousands of numbers can be reached by the keyboard, which is told of them bit by bit.
function reachNumbers() {
  const numbers = document.querySelectorAll(NUMBER);
  let at = 0;
  whenIdle(() => {
    const number = numbers[at++];
    if (number && rowOf(number) && !number.closest("a, button, summary")) {
      for (const [name, value] of [["tabindex", 0], ["role", "button"], ["aria-haspopup", "dialog"]]) number.setAttribute(name, value);
    }
    return at < numbers.length;
  });
}
reachNumbers();
