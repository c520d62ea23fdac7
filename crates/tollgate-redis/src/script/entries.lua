
-- Requests in flight: a sorted set of those of a key, by the time at which each entered. A request that
-- does not leave counts for a while, `hold`, and then no more: its process may have died.

-- When a request will leave is not known. A wait that is known is told in place of that, so it is longer.
local UNKNOWN_WAIT = 0.5

kinds.P = function(key, place)
    local limit, hold, request = number(), number(), word() .. ':' .. word()
    local newest = read(place, 'ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if newest then
        checked(tonumber(newest), place)
    end
    local over = string.format('%.0f', now - hold)
    local held = read(place, 'ZCOUNT', key, '(' .. over, '+inf')
    local self = { at = function() return now end, delay = function() return 0 end, open = function() end }

    -- A request of any cost is one.
    function self.wait()
        return held >= limit and UNKNOWN_WAIT or 0, 1
    end

    -- A request that does not enter is over at once.
    function self.charge()
        if acts == 'e' then
            redis.call('ZADD', key, string.format('%.0f', now), request)
            redis.call('ZREMRANGEBYSCORE', key, '-inf', over)
            keep(key, now + hold, hold)
            held = held + 1
        end
    end

    function self.left(tell)
        tell(limit - held, 0, 0)
    end

    return self
end
