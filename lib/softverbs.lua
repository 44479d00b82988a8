-- For Wireshark and tshark: what softverbs writes in the comments of its captures as fields to filter by, to be shown
-- in columns and to be counted. tshark -X lua_script:softverbs.lua -r c.pcapng -Y 'softverbs.event contains "dropped"'
local softverbs = Proto("softverbs", "softverbs")
local fields = softverbs.fields
fields.pid = ProtoField.uint32("softverbs.pid", "Process")
fields.program = ProtoField.string("softverbs.program", "Program")
fields.from = ProtoField.uint32("softverbs.qp.from", "Queue pair that sent it", base.HEX)
fields.to = ProtoField.uint32("softverbs.qp.to", "Queue pair that it is for", base.HEX)
fields.event = ProtoField.string("softverbs.event", "What happened to it")

local comment = Field.new("frame.comment")

-- "pid 4711 server; qp 0x11 to 0x12; fault: dropped": each part may be missing, and there may be several of the last kind.
local function add_part(tree, part)
    local pid, program = part:match("^pid (%d+) (.*)$")
    local from, to = part:match("^qp (%S+) to (%S+)$")
    if pid then
        tree:add(fields.pid, tonumber(pid))
        tree:add(fields.program, program)
    elseif from then
        if tonumber(from) then tree:add(fields.from, tonumber(from)) end
        if tonumber(to) then tree:add(fields.to, tonumber(to)) end
    elseif part ~= "" then
        tree:add(fields.event, part)
    end
end

function softverbs.dissector(_, _, root)
    local found = comment()
    local text = found and tostring(found.value)
    if not text or not text:match("^pid %d") then return end
    local tree = root:add(softverbs)
    for part in text:gmatch("[^;]+") do add_part(tree, part:match("^%s*(.-)%s*$")) end
end

register_postdissector(softverbs)
