// The search of the site: over its index, a script beside it, so that it works from a disk as well.
function hitsFor(words, index) {
  const asked = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!asked.length) return [];
  return index
    .map((place) => ({place, text: `${place.id} ${place.text}`.toLowerCase()}))
    .filter(({text}) => asked.every((word) => text.includes(word)))
    // What is named so comes before what only mentions it.
    .sort((a, b) => asked.some((word) => b.place.id.includes(word)) - asked.some((word) => a.place.id.includes(word)))
    .map(({place}) => place);
}

const siteSearch = document.getElementById("site-search");
siteSearch?.addEventListener("input", () => {
  const hits = hitsFor(siteSearch.value, window.searchIndex ?? []), most = 100;
  document.getElementById("site-found").value = siteSearch.value && `${hits.length} found`;
  document.getElementById("site-hits").replaceChildren(...hits.slice(0, most).map(({page, trace, id, text}) => {
    const entry = document.createElement("li"), link = document.createElement("a");
    link.href = `${page}#${id}`;
    link.textContent = text.slice(0, 160) || id;
    entry.append(trace, ": ", link);
    return entry;
  }));
});
