local acts, cost, times, tells, skew = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5])
local at = 6

local function word()
    at = at + 1
    return ARGV[at - 1]
end

local function number()
    return tonumber(word())
end

-- The value of this key is not ours, or a clock was wrong: an error without a write.
local function refuse(what, place)
    error({ tollgate = what .. ' ' .. place })
end

-- The reply of a reading command; an error if the value is of another type.
local function read(place, ...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then
        refuse(string.find(reply.err, 'WRONGTYPE', 1, true) and 'WRONGTYPE' or 'FOREIGN', place)
    end
    return reply
end

-- A time that a key has, unless it is no time at all or lies further ahead than clocks may differ.
local function checked(stamp, place)
    if stamp > 9007199254740992 then
        refuse('FOREIGN', place)
    elseif stamp > now + skew then
        refuse('SKEW', place .. ' ' .. string.format('%.0f', stamp - now))
    end
    return stamp
end

-- The key expires after this time.
local function expire(key, time)
    redis.call('PEXPIREAT', key, string.format('%.0f', math.ceil(time / 1000) + 1))
end

-- The key expires no sooner than a time, at which nothing of it counts. It is set ahead by a quarter
-- of `length`, so that it is set about four times in that.
local function keep(key, until_time, length)
    if redis.call('PTTL', key) * 1000 < until_time - now then
        expire(key, until_time + length / 4)
    end
end

-- Whether a value that grows from one size to another reaches a power of two, of 512 or more.
local function reaches_power_of_two(from, to)
    local _, before = math.frexp(from)
    local _, after = math.frexp(to)
    return to >= 512 and before ~= after
end

-- The first index from `from` until just before `to` of which `holds` is true, and from which on it
-- is true of all; `to` if there is none.
local function first_index(from, to, holds)
    while from < to do
        local middle = math.floor((from + to) / 2)
        if holds(middle) then
            to = middle
        else
            from = middle + 1
        end
    end
    return from
end

local kinds = {}
