-- One decision on one or several keys, all at one instant.
--
-- ARGV: what to do (a: acquire, e: acquire and enter, p: peek, s: settle), the cost, how often the same request comes, or
-- what it cost in fact, whether to tell the permits left (1), the most microseconds by which the
-- clock may be behind a key, and then for each key its kind and the numbers of its quotas. To
-- settle, the time of each key's charge follows. A request that enters has two numbers, by which it
-- leaves.
--
-- All times are microseconds, which doubles hold exactly until the year 2255. Times are packed as
-- eight bytes, the most significant first.
--
-- Nothing is written before everything is read and decided, and the first write is one that a
-- server without memory refuses. So an error before it leaves everything as it was.

-- One request of one key of a log, which asks for no numbers: the most frequent one by far. It is
-- what the rest of this script decides, without its functions. Whatever is unusual is left to it.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if ARGV[6] == 'L' and ARGV[1] == 'a' and ARGV[3] == '1' and ARGV[4] == '0' and #KEYS == 1 then
    local key, cost, newest = KEYS[1], tonumber(ARGV[2]), 0
    local size = redis.pcall('STRLEN', key)
    local is_usual = cost > 0 and type(size) == 'number' and size % 8 == 0 and size > 16
    if is_usual then
        newest = struct.unpack('>I8', redis.call('GETRANGE', key, -8, -1))
        is_usual = newest <= now
    end
    local wait, by, longest = 0, 0, 0
    for quota = 1, is_usual and tonumber(ARGV[7]) or 0 do
        local limit, window = tonumber(ARGV[6 + 2 * quota]), tonumber(ARGV[7 + 2 * quota])
        longest = window > longest and window or longest
        -- The newest of the stamps that have to be dead.
        local from = size - (limit - cost + 1) * 8
        if from >= 16 then
            local free = struct.unpack('>I8', redis.call('GETRANGE', key, from, from + 7)) + window
            if free > newest + window then
                is_usual = false
            elseif free - now > wait then
                wait, by = free - now, quota
            end
        end
    end
    if is_usual and wait > 0 then
        return { 0, 0, wait, 1, by, 1, 0, 0, now }
    end
    if is_usual then
        -- A value that reaches a power of two may be cut, and a limiter of another window may hold
        -- it.
        local _, before = math.frexp(size - 16)
        local _, after = math.frexp(size - 16 + cost * 8)
        local grows_within = before == after or size - 16 + cost * 8 < 512
        local held, held_until = struct.unpack('>I8I8', redis.call('GETRANGE', key, 0, 15))
        if grows_within and held == longest and held_until >= now + longest then
            local stamp = struct.pack('>I8', now)
            redis.call('APPEND', key, cost == 1 and stamp or string.rep(stamp, cost))
            return { 1, 0, 0, 0, 0, 0, 0, 0, now }
        end
    end
end

