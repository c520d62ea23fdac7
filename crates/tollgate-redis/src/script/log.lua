
-- The most permits of a key in debt.
local MOST_STAMPS = 2 ^ 21

-- The sliding window log: one string of a head and of the stamps of permits, oldest first. A permit
-- is live until just before its stamp and the window. The numbers: how many quotas, and of each the
-- limit and the window.
--
-- Limiters of other windows share the string. So the head has the longest window that holds it, and
-- until when: a window from the last charge by a limiter that has this window, or longer. Until
-- then no stamp is cut off that this window needs, and the key does not expire.
kinds.L = function(key, place)
    local quotas, longest, most = {}, 0, 0
    for quota = 1, number() do
        quotas[quota] = { limit = number(), window = number() }
        longest, most = math.max(longest, quotas[quota].window), math.max(most, quotas[quota].limit)
    end
    local size = read(place, 'STRLEN', key)
    if size % 8 ~= 0 or size == 8 or size == 16 then
        refuse('FOREIGN', place)
    end
    local count, newest, held, held_until = math.max(0, size / 8 - 2), 0, longest, 0
    if count > 0 then
        newest = checked(struct.unpack('>I8', read(place, 'GETRANGE', key, -8, -1)), place)
        held, held_until = struct.unpack('>I8I8', redis.call('GETRANGE', key, 0, 15))
        if held > 9007199254740992 or held_until > 9007199254740992 then
            refuse('FOREIGN', place)
        end
    end
    -- The newest stamp stands for an earlier reading: stamps never decrease.
    local base = math.max(now, newest)
    local self = { at = function() return base end, delay = function() return 0 end, open = function() end }

    -- Another limiter's window, if that is longer, holds the key until its time is over.
    if held ~= longest and held_until > base then
        self.other = held
    end
    if held < longest or held_until <= base then
        held, held_until = longest, 0
    end

    local function stamp(index)
        local found = struct.unpack('>I8', redis.call('GETRANGE', key, index * 8 + 16, index * 8 + 23))
        if found > newest then
            refuse('FOREIGN', place)
        end
        return found
    end

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
        local stamps = string.rep(struct.pack('>I8', base), permits)
        local is_due = held == longest and held_until < base + held
        held_until = is_due and base + held + math.floor(held / 4) or held_until
        local head = struct.pack('>I8I8', held, held_until)
        local length = redis.call('APPEND', key, count == 0 and head .. stamps or stamps)
        if is_due then
            if count > 0 then
                redis.call('SETRANGE', key, 0, head)
            end
            expire(key, held_until)
        elseif held_until < base + longest then
            keep(key, base + longest, longest)
        end
        local before = count
        count, newest = length / 8 - 2, base
        if reaches_power_of_two(before * 8, count * 8) then
            local dead = first_index(0, count, function(index) return stamp(index) + held > base end)
            if dead * 2 >= count then
                redis.call('SET', key, head .. redis.call('GETRANGE', key, dead * 8 + 16, -1), 'KEEPTTL')
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

    -- Less: up to so many stamps of that time are taken out. More: as many stamps as of now. More
    -- than the limit at one time denies no more than the limit does.
    function self.settle(permits, actual, charged_at)
        if actual > permits then
            local dead = first_index(0, count, function(index) return stamp(index) + longest > base end)
            local owed = math.min(actual - permits, most, MOST_STAMPS - (count - dead))
            return actual, function()
                if owed > 0 then
                    self.charge(owed)
                end
            end
        end
        local first = first_index(0, count, function(index) return stamp(index) >= charged_at end)
        local past = first_index(first, count, function(index) return stamp(index) > charged_at end)
        local given = math.min(permits - actual, past - first)
        if given == 0 or charged_at + longest <= base then
            return permits, function() end
        end
        local before = redis.call('GETRANGE', key, 0, first * 8 + 15)
        local after = first + given < count and redis.call('GETRANGE', key, (first + given) * 8 + 16, -1) or ''
        return permits - given, function()
            if given == count then
                redis.call('DEL', key)
            else
                redis.call('SET', key, before .. after, 'KEEPTTL')
            end
        end
    end

    return self
end
