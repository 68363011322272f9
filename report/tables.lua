-- For the PDF, where Typst divides a line among columns by what stands in them: the sides on which cells stand, texts
-- (class l) at the left, and the widths of columns of sentences, which else are squeezed by columns of numbers.
-- Longer texts than `short` may be broken; a column has `gap` letters of room around it.
local short, gap = 24, 3

-- The letters of a line, with the sizes that `table-size` in pdf.typ gives.
local function line(columns)
  return columns > 10 and 154 or columns > 8 and 143 or columns > 6 and 133 or 125
end

local function side_of(cell)
  return cell.classes:includes("l") and pandoc.AlignLeft or pandoc.AlignRight
end

local function letters(text)
  return utf8.len(text) or #text
end

-- A heading is broken between words; it is bold.
local function longest_word(text)
  local longest = 0
  for word in text:gmatch("%S+") do longest = math.max(longest, letters(word)) end
  return math.ceil(1.15 * longest)
end

function Table(tbl)
  if not FORMAT:match("typst") then return nil end
  local columns, longest = #tbl.colspecs, {}
  local function read(rows, is_body)
    for _, row in ipairs(rows) do
      if #row.cells == columns then
        for at, cell in ipairs(row.cells) do
          local text = pandoc.utils.stringify(cell.contents)
          longest[at] = math.max(longest[at] or 3, is_body and letters(text) or longest_word(text))
          if is_body then tbl.colspecs[at][1] = side_of(cell) end
        end
      end
    end
  end
  read(tbl.head.rows, false)
  for _, body in ipairs(tbl.bodies) do read(body.body, true) end
  local long, asked, all, left = {}, 0, 0, 1
  for at = 1, columns do
    local wide = (longest[at] or 3) + gap
    all = all + wide
    if wide > short then
      long[at] = wide ^ 0.6  -- a very long text gets more than a long one, but not in proportion
      asked = asked + long[at]
    else
      left = left - wide / line(columns)
    end
  end
  if all <= line(columns) then return tbl end
  left = math.max(left, 0.4)
  for at, weight in pairs(long) do tbl.colspecs[at][2] = left * weight / asked end
  return tbl
end
