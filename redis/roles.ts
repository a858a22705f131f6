import type { RedisOptions } from "ioredis";

/**
 * What a connection is used for, which decides how it takes the loss of its server.
 *
 * - `commands`: of a request's path, pipelined by the caller; also for a BullMQ Queue, which shares the connection. While
 *   the server is away they fail at once, and so do those whose answer was on its way: only the caller knows whether one
 *   may be repeated.
 * - `blocking`: commands that wait inside of Redis, for at most fifteen seconds. They survive the loss of the server. Also
 *   for a BullMQ Worker, which sends its ordinary commands here and blocks on a duplicate that it makes and closes itself;
 *   so nothing else may block on that connection.
 * - `subscriber`: channels of pub/sub, and no other command. Subscriptions come back by themselves; what was published
 *   meanwhile is lost.
 */
export type RedisRole = "commands" | "blocking" | "subscriber";

/** What ioredis is told for a role. */
export const roleOptions: Readonly<Record<RedisRole, RoleOptions>> = {
  commands: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: 5000,
  },
  // BullMQ refuses any number of retries.
  blocking: { maxRetriesPerRequest: null, socketTimeout: 20_000 },
  subscriber: { maxRetriesPerRequest: null },
};

/** `socketTimeout`: a server that owes an answer, and says nothing for so many milliseconds, counts as away. */
type RoleOptions = Pick<
  RedisOptions,
  "enableOfflineQueue" | "maxRetriesPerRequest" | "autoResendUnfulfilledCommands" | "socketTimeout"
>;
