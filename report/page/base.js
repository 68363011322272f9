// Shared helpers. The page is complete without scripts; they sort, copy, save and calculate.
// All scripts share one function scope, in alphabetical order; `data-do` of a button names its action in DO.
const DO = {};
const element = (id) => document.getElementById(id);

function makeElement(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  if (button && Object.hasOwn(DO, button.dataset.do)) DO[button.dataset.do](button);
});

// Run step() in idle time until it returns false.
function runWhenIdle(step) {
  const schedule = window.requestIdleCallback ?? ((call) => setTimeout(call, 50));
  schedule((idle) => {
    const deadline = performance.now() + Math.min(idle?.timeRemaining() ?? 10, 10);
    let more = true;
    while (more && performance.now() < deadline) more = step();
    if (more) runWhenIdle(step);
  });
}

function debounce(wait, call) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(call, wait); };
}

// Announce a text to screen readers.
function announce(text) {
  const line = element("said") ?? document.body.appendChild(makeElement("p", {id: "said", class: "unseen", role: "status"}));
  line.textContent = text;
}

function download(name, type, ...parts) {
  const address = URL.createObjectURL(new Blob(parts, {type}));
  makeElement("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(text, button) {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page opened from disk may have no clipboard access: copy through a field.
    const field = document.body.appendChild(makeElement("textarea", {class: "unseen", "aria-hidden": "true"}));
    field.value = text;
    field.select();
    isCopied = document.execCommand("copy");
    field.remove();
    button.focus({preventScroll: true});
  }
  button.dataset.label ??= button.textContent;
  button.textContent = isCopied ? "Copied" : "Not allowed";
  announce(isCopied ? "Copied" : "Copying is not allowed here");
  setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
}

// The address of a place, and its citation.
const addressOf = (id) => location.href.split("#")[0] + "#" + id;
function makeCitation(subject, id) {
  const page = document.querySelector(".cite code")?.textContent.trim() ?? document.title;
  return `${subject}. ${page}. ${addressOf(id)}`;
}

DO.bibtex = () => download("report.bib", "text/plain", element("bibtex").textContent.trim() + "\n");
