
-- The sliding window log: one string of the stamps of permits, oldest first. A permit is live until
-- just before its stamp and the window. The numbers: how many quotas, and of each the limit and the
-- window.
kinds.L = function(key, place)
    local quotas, longest = {}, 0
    for quota = 1, number() do
        quotas[quota] = { limit = number(), window = number() }
        longest = math.max(longest, quotas[quota].window)
    end
    local size = read(place, 'STRLEN', key)
    if size % 8 ~= 0 then
        refuse('FOREIGN', place)
    end
    local count, newest = size / 8, 0
    if count > 0 then
        newest = checked(struct.unpack('>I8', read(place, 'GETRANGE', key, -8, -1)), place)
    end
    -- The newest stamp stands for an earlier reading: stamps never decrease.
    local base = math.max(now, newest)

    local function stamp(index)
        local found = struct.unpack('>I8', redis.call('GETRANGE', key, index * 8, index * 8 + 7))
        if found > newest then
            refuse('FOREIGN', place)
        end
        return found
    end

    local self = { at = function() return base end, delay = function() return 0 end, open = function() end }

    -- The wait of a request, and the quota that decides it; zero if it fits.
    function self.wait(permits)
        local wait, by = 0, 0
        for number_of, quota in ipairs(quotas) do
            -- The newest of the stamps that have to be dead. If it is, so are those before it.
            local index = count - (quota.limit - permits + 1)
            if index >= count then
                return math.huge, number_of
            end
            if index >= 0 then
                local free = stamp(index) + quota.window
                if free > base and free - now > wait then
                    wait, by = free - now, number_of
                end
            end
        end
        return wait, by
    end

    function self.charge(permits)
        local length = redis.call('APPEND', key, string.rep(struct.pack('>I8', base), permits))
        keep(key, base + longest, longest)
        count, newest = length / 8, base
        if reaches_power_of_two(length - permits * 8, length) then
            local dead = first_index(0, count, function(index) return stamp(index) + longest > base end)
            if dead * 2 >= count then
                redis.call('SET', key, redis.call('GETRANGE', key, dead * 8, -1), 'KEEPTTL')
                count = count - dead
            end
        end
    end

    function self.left(tell)
        for _, quota in ipairs(quotas) do
            local first = first_index(math.max(0, count - quota.limit), count, function(index)
                return stamp(index) + quota.window > base
            end)
            if first < count then
                tell(quota.limit - (count - first), stamp(first) + quota.window - now, newest + quota.window - now)
            else
                tell(quota.limit, 0, 0)
            end
        end
    end

    -- Takes out up to so many stamps of that time.
    function self.refund(permits, charged_at)
        local first = first_index(0, count, function(index) return stamp(index) >= charged_at end)
        local past = first_index(first, count, function(index) return stamp(index) > charged_at end)
        local given = math.min(permits, past - first)
        if given == 0 or charged_at + longest <= base then
            return 0
        end
        local before = first > 0 and redis.call('GETRANGE', key, 0, first * 8 - 1) or ''
        local after = first + given < count and redis.call('GETRANGE', key, (first + given) * 8, -1) or ''
        if #before + #after == 0 then
            redis.call('DEL', key)
        else
            redis.call('SET', key, before .. after, 'KEEPTTL')
        end
        return given
    end

    return self
end
