// What the other scripts share. The page is whole without any of them: they sort, copy, save and reckon.
// All stand in one function, in the order of their names; what a click does is found by `data-do` of its button.
const DO = {};
const element = (id) => document.getElementById(id);

function made(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  if (button && Object.hasOwn(DO, button.dataset.do)) DO[button.dataset.do](button);
});

// Work for when the browser has nothing better to do, a little at a time: step() says whether there is more.
function whenIdle(step) {
  const later = window.requestIdleCallback ?? ((call) => setTimeout(call, 50));
  later((left) => {
    const until = performance.now() + Math.min(left?.timeRemaining() ?? 10, 10);
    let more = true;
    while (more && performance.now() < until) more = step();
    if (more) whenIdle(step);
  });
}

function debounced(wait, call) {
  let waiting;
  return () => { clearTimeout(waiting); waiting = setTimeout(call, wait); };
}

// A line for those who listen to the page.
function say(text) {
  const line = element("said") ?? document.body.appendChild(made("p", {id: "said", class: "unseen", role: "status"}));
  line.textContent = text;
}

function download(name, type, ...parts) {
  const address = URL.createObjectURL(new Blob(parts, {type}));
  made("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A file of one's own disk may not be allowed the clipboard: the old way, through a field.
    const field = document.body.appendChild(made("textarea", {class: "unseen", "aria-hidden": "true"}));
    field.value = text;
    field.select();
    done = document.execCommand("copy");
    field.remove();
    button.focus({preventScroll: true});
  }
  button.dataset.label ??= button.textContent;
  button.textContent = done ? "Copied" : "Not allowed";
  say(done ? "Copied" : "Copying is not allowed here");
  setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
}

// Where one finds this place again, and how one cites it.
const addressOf = (id) => location.href.split("#")[0] + "#" + id;
function cited(what, id) {
  const page = document.querySelector(".cite code")?.textContent.trim() ?? document.title;
  return `${what}. ${page}. ${addressOf(id)}`;
}

DO.bibtex = () => download("report.bib", "text/plain", element("bibtex").textContent.trim() + "\n");
