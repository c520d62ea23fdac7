-- The first command of a store that this user may not use on the keys of a prefix; an empty text if
-- it may use all. ARGV: a key that begins with the prefix. Nothing is read or written.
local key = ARGV[1]
local commands = {
    { 'EVAL', '', 0 },
    { 'EVALSHA', '', 0 },
    { 'TIME' },
    { 'STRLEN', key },
    { 'GET', key },
    { 'GETRANGE', key, 0, 0 },
    { 'PTTL', key },
    { 'APPEND', key, '' },
    { 'SET', key, '' },
    { 'SETRANGE', key, 0, '' },
    { 'PEXPIREAT', key, 0 },
    { 'DEL', key },
    { 'UNLINK', key },
    { 'ZRANGE', key, -1, -1 },
    { 'ZCOUNT', key, 0, 0 },
    { 'ZADD', key, 0, '' },
    { 'ZREM', key, '' },
    { 'ZREMRANGEBYSCORE', key, 0, 0 },
}
for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(unpack(command)) then
        return command[1]
    end
end
return ''
