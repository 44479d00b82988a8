-- For Wireshark and tshark: what softverbs writes in the comments of its captures as fields to filter by, to be shown
-- in columns and to be counted. tshark -X lua_script:softverbs.lua -r c.pcapng -Y 'softverbs.event contains "dropped"'
local softverbs = Proto("softverbs", "softverbs")
local fields = softverbs.fields
fields.pid = ProtoField.uint32("softverbs.pid", "Process")
fields.program = ProtoField.string("softverbs.program", "Program")
fields.from = ProtoField.uint32("softverbs.qp.from", "Queue pair that sent it", base.HEX)
fields.to = ProtoField.uint32("softverbs.qp.to", "Queue pair that it is for", base.HEX)
fields.event = ProtoField.string("softverbs.event", "What happened to it")
fields.srd = ProtoField.string("softverbs.srd", "SRD packet")
fields.qkey = ProtoField.uint32("softverbs.srd.qkey", "Q_Key", base.HEX)
fields.source = ProtoField.uint24("softverbs.srd.source", "Source queue pair", base.HEX)
fields.epoch = ProtoField.uint32("softverbs.srd.epoch", "Epoch of the flow", base.HEX)
fields.cookie = ProtoField.uint32("softverbs.srd.cookie", "Cookie of the receiver", base.HEX)
fields.number = ProtoField.uint32("softverbs.srd.number", "Number in the flow")
fields.floor = ProtoField.uint32("softverbs.srd.floor", "Floor: all numbers before it have ended")
fields.status = ProtoField.uint32("softverbs.srd.status", "Status", base.DEC,
    {[0] = "done", [7] = "no access", [8] = "unknown flow", [9] = "no queue pair", [10] = "no receive", [11] = "receive too short",
     [14] = "no address handle"})

local comment = Field.new("frame.comment")
local opcode = Field.new("infiniband.bth.opcode")
local udp_length = Field.new("udp.length")

-- The opcodes of SRD (docs/reference/srd.md), which Wireshark does not know. It does know the BTH before them.
local BTH, DETH, SRD, UDP, ICRC, ACKNOWLEDGE = 12, 8, 16, 8, 4, 0xd1
local names = {[0xc4] = "SEND_ONLY", [0xc5] = "SEND_ONLY_IMMEDIATE", [0xca] = "WRITE_ONLY", [0xcb] = "WRITE_ONLY_IMMEDIATE",
               [0xcc] = "READ_REQUEST", [0xd0] = "READ_RESPONSE_ONLY", [ACKNOWLEDGE] = "ACKNOWLEDGE", [0xd8] = "HELLO",
               [0xd9] = "WELCOME"}
local responses = {[0xd0] = true, [ACKNOWLEDGE] = true, [0xd9] = true}

local function add_srd(bytes, tree)
    local found, length = opcode(), udp_length()
    local name = found and names[found.value]
    if not name or found.offset + BTH + DETH + SRD > bytes:len() then return end
    local deth = bytes(found.offset + BTH, DETH)
    local srd = bytes(found.offset + BTH + DETH, SRD)
    local part = tree:add(fields.srd, srd, name)
    part:add(fields.qkey, deth(0, 4))
    part:add(fields.source, deth(5, 3))
    part:add(fields.epoch, srd(0, 4))
    part:add(fields.cookie, srd(4, 4))
    part:add(fields.number, srd(8, 4))
    if not responses[found.value] then
        part:add(fields.floor, srd(12, 4))
    elseif found.value == ACKNOWLEDGE and length and length.value == UDP + BTH + DETH + SRD + ICRC then
        part:add(fields.status, srd(12, 4)) -- several answers are bytes of the payload
    end
end

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

function softverbs.dissector(bytes, _, root)
    local found, srd = comment(), opcode()
    local text = found and tostring(found.value)
    local has_comment = text and text:match("^pid %d")
    if not has_comment and not (srd and names[srd.value]) then return end
    local tree = root:add(softverbs)
    for part in (has_comment and text or ""):gmatch("[^;]+") do add_part(tree, part:match("^%s*(.-)%s*$")) end
    add_srd(bytes, tree)
end

register_postdissector(softverbs)
