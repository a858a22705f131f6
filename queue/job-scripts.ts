/**
 * The changes of a job that must be whole: a job that ended never begins again, and one that is unfinished always counts.
 * They touch our own keys only.
 */
export const jobScripts = {
  /**
   * KEYS job, unfinished, owner's jobs. ARGV id, time, place in the owner's jobs, most unfinished, kept milliseconds,
   * most of the owner, fields… Gives how many are unfinished then, 0 when the job is there already, -1 when there are
   * too many.
   */
  create: `
if redis.call("exists", KEYS[1]) == 1 then return 0 end
if redis.call("zcard", KEYS[2]) >= tonumber(ARGV[4]) then return -1 end
redis.call("hset", KEYS[1], unpack(ARGV, 7))
redis.call("pexpire", KEYS[1], ARGV[5])
redis.call("zadd", KEYS[2], ARGV[2], ARGV[1])
redis.call("zadd", KEYS[3], 0, ARGV[3])
redis.call("zremrangebyrank", KEYS[3], 0, -1 - ARGV[6])
redis.call("pexpire", KEYS[3], ARGV[5])
return redis.call("zcard", KEYS[2])`,

  /**
   * KEYS job, unfinished, undelivered webhooks, how many each tenant has. ARGV id, states that it may be in, what becomes of it, kept milliseconds,
   * time, milliseconds that webhooks are kept, channel, fields… Gives 1, or 0 when it is in no such state.
   *
   * on: goes on; end: ends, and nobody needs its request any more; fail: ends and may be run again; again: is run again.
   */
  change: `
local state = redis.call("hget", KEYS[1], "state")
if not state or not string.find(ARGV[2], state, 1, true) then return 0 end
redis.call("hset", KEYS[1], unpack(ARGV, 8))
local changes = redis.call("hincrby", KEYS[1], "changes", 1)
if ARGV[3] == "on" then return 1 end
redis.call("pexpire", KEYS[1], ARGV[4])
if ARGV[3] == "again" then
  redis.call("zadd", KEYS[2], ARGV[5], ARGV[1])
  redis.call("hdel", KEYS[1], "error", "ended")
  return 1
end
redis.call("zrem", KEYS[2], ARGV[1])
redis.call("hset", KEYS[1], "ended", ARGV[5])
if ARGV[3] == "end" then redis.call("hdel", KEYS[1], "request") end
if redis.call("hexists", KEYS[1], "webhook") == 1 then
  local tenant = redis.call("hget", KEYS[1], "tenant")
  local delivery = ARGV[1] .. "_" .. changes .. " " .. tenant
  redis.call("zadd", KEYS[3], ARGV[5], delivery)
  redis.call("hincrby", KEYS[4], tenant, 1)
  redis.call("pexpire", KEYS[3], ARGV[6])
  redis.call("pexpire", KEYS[4], ARGV[6])
  redis.call("publish", ARGV[7], cjson.encode({ type = "webhook", delivery = delivery }))
end
return 1`,
} as const;
