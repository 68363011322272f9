// The search of the site. Its index is a script, so that it also works from disk.
function findHits(words, index) {
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!terms.length) return [];
  return index
    .map((place) => ({place, text: `${place.id} ${place.text}`.toLowerCase()}))
    .filter(({text}) => terms.every((word) => text.includes(word)))
    // Places named after a term come before those that only mention it.
    .sort((a, b) => terms.some((word) => b.place.id.includes(word)) - terms.some((word) => a.place.id.includes(word)))
    .map(({place}) => place);
}

const siteSearch = document.getElementById("site-search");
siteSearch?.addEventListener("input", () => {
  const hits = findHits(siteSearch.value, window.searchIndex ?? []), limit = 100;
  document.getElementById("site-found").value = siteSearch.value && `${hits.length} found`;
  document.getElementById("site-hits").replaceChildren(...hits.slice(0, limit).map(({page, trace, id, text}) => {
    const entry = document.createElement("li"), link = document.createElement("a");
    link.href = `${page}#${id}`;
    link.textContent = text.slice(0, 160) || id;
    entry.append(trace, ": ", link);
    return entry;
  }));
});
