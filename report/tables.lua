-- For the PDF, where Typst divides a line among columns by what stands in them: the sides on which cells stand, texts
-- (class l) at the left, and the widths of columns of sentences, which else are squeezed by columns of numbers.
-- Characters of a line, see `table-size` in pdf.typ; longer texts than `short` may be broken.
local line, short = 135, 24

local function side_of(cell)
  return cell.classes:includes("l") and pandoc.AlignLeft or pandoc.AlignRight
end

function Table(tbl)
  if not FORMAT:match("typst") then return nil end
  local columns, longest = #tbl.colspecs, {}
  local function read(rows, is_body)
    for _, row in ipairs(rows) do
      if #row.cells == columns then
        for at, cell in ipairs(row.cells) do
          longest[at] = math.max(longest[at] or 3, utf8.len(pandoc.utils.stringify(cell.contents)) or 3)
          if is_body then tbl.colspecs[at][1] = side_of(cell) end
        end
      end
    end
  end
  read(tbl.head.rows, false)
  for _, body in ipairs(tbl.bodies) do read(body.body, true) end
  local long, asked, all, left = {}, 0, 0, 1
  for at = 1, columns do
    local letters = (longest[at] or 3) + 3
    all = all + letters
    if letters > short then
      long[at] = letters ^ 0.6  -- a very long text gets more than a long one, but not in proportion
      asked = asked + long[at]
    else
      left = left - letters / line
    end
  end
  if all <= line then return tbl end
  left = math.max(left, 0.4)
  for at, weight in pairs(long) do tbl.colspecs[at][2] = left * weight / asked end
  return tbl
end
