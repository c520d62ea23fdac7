
-- The longest wait among the keys, with its key and quota, and a bit for each key that denies.
local function ask(subjects, permits)
    local wait, place, quota, violated = 0, 0, 0, 0
    for number_of, subject in ipairs(subjects) do
        local its_wait, by = subject.wait(permits)
        if its_wait > 0 then
            violated = violated + 2 ^ (number_of - 1)
            if its_wait > wait then
                wait, place, quota = its_wait, number_of, by
            end
        end
    end
    return wait, place, quota, violated
end

-- Charges what a request has cost in fact, in place of what its receipt was charged. Each key tells
-- what is charged to it then, and how to write that, before any is written. Replies with the
-- fewest.
local function settle(subjects, actual)
    local fewest, writes = math.huge, {}
    for number_of, subject in ipairs(subjects) do
        local permits, write = subject.settle(cost, actual, tonumber(ARGV[at + number_of - 1]))
        fewest, writes[number_of] = math.min(fewest, permits), write
    end
    for _, write in ipairs(writes) do
        write()
    end
    return { fewest }
end

-- Replies: how many of the requests are admitted and their delay, the wait of the others, zero if it
-- is not known, with its key, quota and the keys that deny; a key that a limiter of another window holds, and that window;
-- for each key the time of its charge; and, if asked for, for each quota the permits left and the
-- waits until there are more and until there are all.
local function decide()
    local subjects = {}
    for place, key in ipairs(KEYS) do
        subjects[place] = kinds[word()](key, place)
    end
    if acts == 's' then
        return settle(subjects, times)
    end

    local granted, wait, place, quota, violated = times, 0, 0, 0, 0
    local delay = 0
    for _, subject in ipairs(subjects) do
        delay = math.max(delay, subject.delay())
    end
    if cost > 0 then
        wait, place, quota, violated = ask(subjects, cost * times)
        if wait > 0 then
            -- As many as fit, by bisection: whatever is admitted, less would be as well.
            granted = first_index(1, times, function(some) return ask(subjects, cost * some) > 0 end) - 1
        end
        for _, subject in ipairs(acts ~= 'p' and subjects or {}) do
            if granted > 0 then
                subject.charge(cost * granted)
            else
                subject.open()
            end
        end
        -- What was asked above was several of them.
        if granted < times and times > 1 then
            wait, place, quota, violated = ask(subjects, cost)
        end
    end

    local shared, other = 0, 0
    for number_of, subject in ipairs(subjects) do
        if subject.other then
            shared, other = number_of, subject.other
        end
    end
    local reply = { granted, delay, math.floor(wait), place, quota, violated, shared, other }
    for _, subject in ipairs(subjects) do
        reply[#reply + 1] = subject.at()
    end
    if tells then
        for _, subject in ipairs(subjects) do
            subject.left(function(remaining, next_after, reset_after)
                reply[#reply + 1] = math.max(0, remaining)
                reply[#reply + 1] = next_after
                reply[#reply + 1] = reset_after
            end)
        end
    end
    return reply
end

local is_right, reply = pcall(decide)
if is_right then
    return reply
elseif type(reply) == 'table' and reply.tollgate then
    return redis.error_reply('TOLLGATE ' .. reply.tollgate)
elseif type(reply) == 'table' then
    return reply
end
-- An error of the server: its first word is the code.
return redis.error_reply(reply)
