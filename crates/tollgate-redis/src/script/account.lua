
-- Accounts: a time and the permits used since, in 16 bytes. A rule says how long a request waits,
-- what the account is after it, what it leaves, and until when it differs from a new one.
--
-- Every product below is less than 2^53 (`plan.rs` sees to it), so it is exact, and so is a
-- quotient of it that is rounded up or down. Where a debt makes a product larger, a comment says
-- why that does no harm.
local WHOLE = 9007199254740992

-- A debt of a bucket or a queue lasts for at most so long: 73 years.
local LONGEST_DEBT = 2305843009213693

local function account(key, place, rule)
    local anchor, used = now, 0
    local value = read(place, 'GET', key)
    if value then
        if #value ~= 16 then
            refuse('FOREIGN', place)
        end
        anchor, used = struct.unpack('>I8I8', value)
        checked(anchor, place)
        if used >= rule.used_below then
            refuse('FOREIGN', place)
        end
    elseif rule.lacks then
        used = rule.lacks
    end

    local function write()
        if rule.lacks then
            -- It never expires: a new key has less than one that was left alone.
            redis.call('SET', key, struct.pack('>I8I8', anchor, used))
        elseif used == 0 then
            redis.call('DEL', key)
        else
            local ends = math.ceil(rule.ends_at(anchor, used) / 1000) + 1
            redis.call('SET', key, struct.pack('>I8I8', anchor, used), 'PXAT', string.format('%.0f', ends))
        end
    end

    local self = { at = function() return math.max(now, anchor) end }

    function self.wait(permits)
        if permits > rule.limit then
            return math.huge, 1
        end
        return used > 0 and rule.wait(anchor, used, permits) or 0, 1
    end

    -- A new key that is denied has to be known, or it would never earn a permit.
    function self.open()
        if rule.lacks and not value then
            write()
        end
    end

    function self.delay()
        return used > 0 and rule.delay and rule.delay(anchor, used) or 0
    end

    function self.charge(permits)
        anchor, used = rule.charged(anchor, used, permits)
        write()
    end

    function self.left(tell)
        local remaining = used > 0 and math.max(0, rule.remaining(anchor, used)) or rule.limit
        local next_after = remaining < rule.limit and self.wait(remaining + 1) or 0
        tell(remaining, next_after, used > 0 and math.max(0, rule.all_free_at(anchor, used) - now) or 0)
    end

    -- Less is refunded only to the account that was charged, while it runs.
    function self.settle(permits, actual, charged_at)
        local since, left = anchor, nil
        if actual > permits then
            since, left = rule.charged(anchor, used, actual - permits)
        else
            left = used > 0 and rule.refunded(anchor, used, permits - actual, charged_at)
        end
        if not left then
            return permits, function() end
        end
        return actual, function()
            anchor, used = since, left
            write()
        end
    end

    return self
end

-- What buckets and queues have in common: permits that flow, `flow` every `period`, and a stride of
-- them in a whole time.
local function flow_of(limit, flow, period, stride, stride_time)
    local self = {}

    function self.time_for(permits)
        return math.ceil(permits * period / flow)
    end

    -- The same account, from a later time.
    local function moved(anchor, used, strides)
        return anchor + strides * stride_time, used - strides * stride
    end

    -- The same account with less than a stride and the limit, from a time that may be yet to come.
    -- A debt may be of many strides; of these, products are exact.
    function self.near(anchor, used)
        return moved(anchor, used, math.max(0, math.floor((used - limit) / stride)))
    end

    -- The account with more permits, from the last time by which all before it has flowed in. A
    -- debt of 73 years is rounded.
    function self.added(anchor, used, permits)
        local most = math.floor((now - anchor + LONGEST_DEBT) / period * flow)
        used = math.min(used + permits, most, WHOLE - 1)
        local strides = math.floor(math.min((now - anchor) / stride_time, (used - limit) / stride))
        return moved(anchor, used, math.max(0, strides))
    end

    return self
end

-- A bucket of `limit` permits, refilled with `flow` permits every `period`; the account is that of a
-- bucket which was full at its time. A new key may lack some permits.
kinds.B = function(key, place)
    local limit, flow, period, stride, stride_time = number(), number(), number(), number(), number()
    local rule = { limit = limit, used_below = WHOLE }
    local flowing = flow_of(limit, flow, period, stride, stride_time)
    local lacks = number()
    rule.lacks = lacks > 0 and lacks or nil

    -- What a near account lacks, in units of 1/period of a permit; nothing or less if it is over.
    -- No more is refilled than all of it and a little. By a clock that lags behind the anchor, what
    -- is refilled is less than nothing.
    local function lacking(anchor, used)
        local since = math.max(-flowing.time_for(limit), now - anchor)
        return used * period - math.min(since, flowing.time_for(used) + 1) * flow
    end

    local function is_over(anchor, used)
        return lacking(flowing.near(anchor, used)) <= 0
    end

    function rule.all_free_at(anchor, used)
        anchor, used = flowing.near(anchor, used)
        return anchor + flowing.time_for(used)
    end
    rule.ends_at = rule.all_free_at

    function rule.wait(anchor, used, permits)
        anchor, used = flowing.near(anchor, used)
        local lacked = lacking(anchor, used)
        if lacked <= 0 or lacked + (permits - limit) * period <= 0 then
            return 0
        end
        return anchor + flowing.time_for(used + permits - limit) - now
    end

    function rule.charged(anchor, used, permits)
        if is_over(anchor, used) then
            anchor, used = now, 0
        end
        return flowing.added(anchor, used, permits)
    end

    function rule.remaining(anchor, used)
        return limit - math.ceil(math.max(0, lacking(flowing.near(anchor, used))) / period)
    end

    function rule.refunded(anchor, used, permits, charged_at)
        return not is_over(anchor, used) and charged_at >= anchor and used >= permits and used - permits
    end

    return account(key, place, rule)
end

-- A queue from which `flow` places leave every `period`; the account is that of a queue which was
-- empty at its time.
kinds.Q = function(key, place)
    local limit, flow, period, stride, stride_time = number(), number(), number(), number(), number()
    local longest = number()
    local rule = { limit = limit, used_below = WHOLE }
    local flowing = flow_of(limit, flow, period, stride, stride_time)

    local function is_empty(anchor, used)
        anchor, used = flowing.near(anchor, used)
        return used * period <= math.min(math.max(0, now - anchor), flowing.time_for(used) + 1) * flow
    end

    function rule.all_free_at(anchor, used)
        anchor, used = flowing.near(anchor, used)
        return anchor + flowing.time_for(used)
    end
    rule.ends_at = rule.all_free_at

    function rule.delay(anchor, used) return math.max(0, rule.all_free_at(anchor, used) - now) end

    function rule.wait(anchor, used)
        local behind = is_empty(anchor, used) and anchor - now or rule.delay(anchor, used)
        return math.max(0, behind - longest)
    end

    function rule.charged(anchor, used, places)
        if is_empty(anchor, used) then
            anchor, used = now, 0
        end
        return flowing.added(anchor, used, places)
    end

    function rule.remaining(anchor, used) return rule.delay(anchor, used) <= longest and limit or 0 end

    -- Those behind a place have been told theirs.
    function rule.refunded() return false end

    return account(key, place, rule)
end

-- The start of the window that a time lies in, if one begins at `first`.
local function start_at(first, window)
    return now - (now - first) % window
end

-- A window of so many permits. `opens` is the start of one that begins now, and `ends_at` tells when
-- the one with a start ends.
local function fixed_window(key, place, limit, opens, ends_at)
    local rule = { limit = limit, used_below = 2 ^ 31, ends_at = ends_at, all_free_at = ends_at }

    function rule.wait(anchor, used, permits)
        if ends_at(anchor) <= now or used + permits <= limit then
            return 0
        end
        return ends_at(anchor) - now
    end

    function rule.charged(anchor, used, permits)
        if used == 0 or ends_at(anchor) <= now then
            return opens, math.min(permits, rule.used_below - 1)
        end
        return anchor, math.min(used + permits, rule.used_below - 1)
    end

    function rule.remaining(anchor, used) return ends_at(anchor) <= now and limit or limit - used end

    function rule.refunded(anchor, used, permits, charged_at)
        return ends_at(anchor) > now and charged_at >= anchor and used >= permits and used - permits
    end

    return account(key, place, rule)
end

-- A fixed window; it begins with a request, or at a whole number of windows after `first`.
kinds.F = function(key, place)
    local limit, window, is_aligned, first = number(), number(), number() == 1, number()
    local opens = is_aligned and start_at(first, window) or now
    return fixed_window(key, place, limit, opens, function(anchor) return anchor + window end)
end

-- A fixed window of the calendar. The caller tells the starts of three windows one after the other, and
-- the end of the last: those about its own time. This clock alone tells which of them is now.
kinds.M = function(key, place)
    local limit, starts = number(), { number(), number(), number(), number() }
    local function ends_at(anchor)
        for _, start in ipairs(starts) do
            if anchor < start then
                return start
            end
        end
        refuse('CALENDAR', place)
    end
    local opens
    for _, start in ipairs(starts) do
        opens = start <= now and start or opens
    end
    if not opens or ends_at(now) <= now then
        refuse('CALENDAR', place)
    end
    return fixed_window(key, place, limit, opens, ends_at)
end

-- A sliding counter: the permits of an aligned window, and of the one before it, up to 2^20 each.
-- The lower 16 bits of both are in the lower 32 bits, and their upper 4 bits, which only a debt
-- has, in the 8 bits above.
--
-- The share of a count that is more than twice the limit may be rounded. Then it is more than the
-- limit by either number.
kinds.C = function(key, place)
    local limit, window, first = number(), number(), number()
    local rule = { limit = limit, used_below = 2 ^ 40 }

    local function packed(previous, current)
        current = math.min(current, 2 ^ 20 - 1)
        local upper = math.floor(previous / 65536) * 16 + math.floor(current / 65536)
        return (upper * 65536 + previous % 65536) * 65536 + current % 65536
    end

    local function unpacked(used)
        local lower, upper = used % 2 ^ 32, math.floor(used / 2 ^ 32)
        return math.floor(lower / 65536) + math.floor(upper / 16) * 65536, lower % 65536 + upper % 16 * 65536
    end

    -- The counts in the window that runs now, and its end; nothing if neither window overlaps it.
    local function counts(anchor, used)
        local ends, previous, current = anchor + window, unpacked(used)
        if now < ends then
            return previous, current, ends
        elseif now < ends + window then
            return current, 0, ends + window
        end
    end

    function rule.all_free_at(anchor, used)
        local _, current = unpacked(used)
        return anchor + (current > 0 and 2 or 1) * window
    end
    function rule.ends_at(anchor) return anchor + 2 * window end

    function rule.wait(anchor, used, permits)
        local previous, current, ends = counts(anchor, used)
        if not previous or previous * math.min(ends - now, window) + (current + permits) * window <= limit * window then
            return 0
        end
        if current + permits > limit then
            previous, current, ends = current, 0, ends + window
        end
        -- The previous count has faded to the room there is.
        local room = math.max(0, limit - current - permits)
        return ends - (previous > 0 and math.floor(room * window / previous) or window) - now
    end

    function rule.charged(anchor, used, permits)
        local previous, current, ends = counts(anchor, used)
        if used == 0 or not previous then
            return start_at(first, window), packed(0, permits)
        end
        return ends - window, packed(previous, current + permits)
    end

    function rule.remaining(anchor, used)
        local previous, current, ends = counts(anchor, used)
        return limit - (previous and math.ceil(previous * math.min(ends - now, window) / window) + current or 0)
    end

    -- From the count that it was added to, while that has weight.
    function rule.refunded(anchor, used, permits, charged_at)
        local previous, current = unpacked(used)
        if charged_at >= anchor and charged_at < anchor + window and now < anchor + 2 * window then
            return current >= permits and packed(previous, current - permits)
        elseif charged_at >= anchor - window and charged_at < anchor and now < anchor + window then
            return previous >= permits and packed(previous - permits, current)
        end
        return false
    end

    return account(key, place, rule)
end
