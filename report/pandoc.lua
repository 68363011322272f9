-- What Quarto does by itself and Pandoc does not: numbers figures, tables and sections, and turns @fig-, @tbl- and
-- @sec- into links. A reference to nothing is an error. Runs before --citeproc, which would take them for citations.
local words = {fig = "Figure", tbl = "Table", sec = "Section"}
local found, counts, sections = {}, {fig = 0, tbl = 0}, {}

local function number_divs(div)
  local kind = div.identifier:match("^(%a+)%-")
  if kind ~= "fig" and kind ~= "tbl" then return nil end
  counts[kind] = counts[kind] + 1
  local name = words[kind] .. " " .. counts[kind]
  found[div.identifier] = name
  div.classes:insert(kind == "fig" and "figure" or "table-figure")
  for place = #div.content, 1, -1 do
    local block = div.content[place]
    if block.t == "Para" then
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
  return pandoc.Link(found[id], "#" .. id)
end

return {{Div = number_divs, Header = number_sections}, {Cite = link}}
