-- What Quarto does by itself and Pandoc does not: numbers figures, tables and sections, and turns @fig-, @tbl- and
-- @sec- into links. A reference to nothing is an error. Runs before --citeproc, which would take them for citations.
local words = {fig = "Figure", tbl = "Table", sec = "Section"}
local found, counts, sections = {}, {fig = 0, tbl = 0}, {}
local pdf = FORMAT:match("typst")

-- In a PDF raw HTML is nothing: its tables are read, as Quarto reads them.
local function read_tables(raw)
  if not pdf or raw.format ~= "html" then return nil end
  local tables = pandoc.Blocks({})
  for html in raw.text:gmatch("<table.->.-</table>") do
    for _, block in ipairs(pandoc.read(html, "html").blocks) do
      if block.t == "Table" then
        block.classes:insert("typst:no-figure")  -- the figure is that of the div around it
        tables:insert(block)
      end
    end
  end
  return tables
end

-- A figure of Typst, of the kinds that Quarto gives, so that pdf.typ holds for both.
local function typst_figure(div, kind, caption)
  local head = string.format('#figure(kind: "quarto-float-%s", supplement: [%s], [', kind, words[kind])
  local blocks = pandoc.Blocks({pandoc.RawBlock("typst", head)})
  blocks:extend(div.content)
  blocks:insert(pandoc.RawBlock("typst", "], caption: ["))
  blocks:extend(caption)
  blocks:insert(pandoc.RawBlock("typst", string.format("]) <%s>", div.identifier)))
  return blocks
end

local function typst_callout(div)
  if not pdf then return nil end
  for _, class in ipairs(div.classes) do
    if class:match("^callout") then
      local blocks = pandoc.Blocks({pandoc.RawBlock("typst", "#boxed[")})
      blocks:extend(div.content)
      blocks:insert(pandoc.RawBlock("typst", "]"))
      return blocks
    end
  end
end

local function number_divs(div)
  local kind = div.identifier:match("^(%a+)%-")
  if kind ~= "fig" and kind ~= "tbl" then return typst_callout(div) end
  counts[kind] = counts[kind] + 1
  local name = words[kind] .. " " .. counts[kind]
  found[div.identifier] = name
  div.classes:insert(kind == "fig" and "figure" or "table-figure")
  for place = #div.content, 1, -1 do
    local block = div.content[place]
    if block.t == "Para" then
      if pdf then
        div.content:remove(place)
        return typst_figure(div, kind, {block})
      end
      block.content:insert(1, pandoc.Str(name .. ": "))
      local caption = pandoc.Div({block}, pandoc.Attr("", {"caption"}))
      div.content:remove(place)
      div.content:insert(kind == "tbl" and 1 or #div.content + 1, caption)
      break
    end
  end
  return div
end

local function number_sections(header)
  if header.classes:includes("unnumbered") then return nil end
  for level = header.level + 1, 6 do sections[level] = 0 end
  sections[header.level] = (sections[header.level] or 0) + 1
  local parts = {}
  for level = 1, header.level do parts[#parts + 1] = tostring(sections[level] or 0) end
  found[header.identifier] = words.sec .. " " .. table.concat(parts, ".")
  return nil
end

local function link(cite)
  local id = cite.citations[1].id
  if not words[id:match("^(%a+)%-") or ""] then return nil end
  if not found[id] then error("reference to @" .. id .. ", which is not in the report") end
  return pandoc.Link((found[id]:gsub(" ", "\u{a0}")), "#" .. id)  -- stays on one line
end

-- The landmark that assistive programs go to, which ends after the footnotes (render.py), and the link to what comes after the list of contents.
local function main(doc)
  if pdf then return nil end
  local before = ((doc.meta.format or {}).html or {})["include-before-body"]
  doc.meta["include-before"] = before and before.text
  doc.blocks:insert(1, pandoc.RawBlock("html", "<main>"))
  return doc
end

return {{RawBlock = read_tables}, {Div = number_divs, Header = number_sections}, {Cite = link}, {Pandoc = main}}
