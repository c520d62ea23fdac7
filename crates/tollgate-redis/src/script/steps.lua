
-- The quantised log: a string of entries of 16 bytes, one for each step in which permits were
-- granted, oldest first: the end of the step, and the permits granted until then since the string
-- began. A permit counts for a window from the end of its step.
--
-- Whoever cuts off entries leaves one that no longer counts: what was granted before the others.
kinds.S = function(key, place)
    local limit, window, step = number(), number(), number()
    local size = read(place, 'STRLEN', key)
    if size % 16 ~= 0 then
        refuse('FOREIGN', place)
    end
    local count = size / 16

    -- A short value is read at once, and each entry of a long one once. `known` has the ends of
    -- entries and what was granted until then, if they have been looked at or written.
    local known, value = {}, size <= 1024 and size > 0 and read(place, 'GET', key)
    local function entry(index)
        local it = known[index]
        if not it then
            local bytes, from = value, index * 16
            if not bytes then
                bytes, from = read(place, 'GETRANGE', key, from, from + 15), 0
            end
            it = { struct.unpack('>I8I8', bytes, from + 1) }
            if it[2] > 9007199254740992 then
                refuse('FOREIGN', place)
            end
            known[index] = it
        end
        return it[1], it[2]
    end
    local function granted_until(index)
        if index < 0 then
            return 0
        end
        local _, granted = entry(index)
        return granted
    end

    local newest = 0
    if count > 0 then
        newest = entry(count - 1)
        checked(math.max(0, newest - step), place)
    end
    -- The last whole step that is over, and the end of the one that runs. An earlier reading than
    -- the first moment of the newest step counts as that moment.
    local function begun() return step > 1 and newest - step or newest end
    local over = math.max(math.floor(now / step) * step, begun())
    local running = math.max(math.ceil(now / step) * step, newest)

    local first, before, counting
    local function count_again()
        first = first_index(0, count, function(index) return entry(index) + window > over end)
        before = granted_until(first - 1)
        counting = first < count and granted_until(count - 1) - before or 0
    end
    count_again()

    -- The time at which the last of the oldest permits that count is free.
    local function free_at(permits)
        local index = first_index(first, count, function(index) return granted_until(index) - before >= permits end)
        return (entry(index)) + window
    end

    local self = { at = function() return running end, delay = function() return 0 end, open = function() end }

    function self.wait(permits)
        if permits > limit then
            return math.huge, 1
        end
        local too_many = counting + permits - limit
        return too_many > 0 and free_at(too_many) - now or 0, 1
    end

    function self.charge(permits)
        local granted = granted_until(count - 1) + permits
        if count > 0 and newest == running then
            known[count - 1] = { running, granted }
            redis.call('SETRANGE', key, count * 16 - 8, struct.pack('>I8', granted))
        else
            local length = redis.call('APPEND', key, struct.pack('>I8I8', running, granted))
            count, newest = length / 16, running
            known[count - 1] = { running, granted }
            if reaches_power_of_two(length - 16, length) then
                local dead = first_index(0, count, function(index) return entry(index) + window > begun() end) - 1
                if dead * 2 >= count then
                    redis.call('SET', key, redis.call('GETRANGE', key, dead * 16, -1), 'KEEPTTL')
                    count, known, value = count - dead, {}, nil
                end
            end
        end
        keep(key, running + window, window)
        count_again()
    end

    function self.left(tell)
        if counting == 0 then
            return tell(limit, 0, 0)
        end
        tell(limit - counting, free_at(math.max(0, counting - limit) + 1) - now, free_at(counting) - now)
    end

    -- As of a log: a debt is at most the limit, and a key has at most 2^31 permits.
    function self.settle(permits, actual, charged_in)
        if actual > permits then
            local owed = math.min(actual - permits, limit, 2 ^ 31 - counting)
            return actual, function()
                if owed > 0 then
                    self.charge(owed)
                end
            end
        end
        local index = first_index(first, count, function(index) return entry(index) >= charged_in end)
        if index == count or entry(index) ~= charged_in then
            return permits, function() end
        end
        local given = math.min(permits - actual, granted_until(index) - granted_until(index - 1))
        local later = {}
        for place_of = index, count - 1 do
            local ends, granted = entry(place_of)
            later[#later + 1] = struct.pack('>I8I8', ends, granted - given)
        end
        return permits - given, function()
            redis.call('SETRANGE', key, index * 16, table.concat(later))
        end
    end

    return self
end
