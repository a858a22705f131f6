import { ResidentVersions } from "../../pool/resident-versions.ts";
import { PoolChannel } from "../../queue/pool-channel.ts";
import { PoolWorker } from "../../queue/pool-worker.ts";
import { connect } from "../../redis/connection.ts";
import { systemClock } from "../../serving/clock.ts";
import { InstantInstances } from "../helpers/instant-instances.ts";
import { countedVersion } from "../helpers/queue-stand.ts";
import { responseTo } from "../helpers/requests.ts";
import { SilentLog } from "../helpers/silent-log.ts";

/**
 * A pool worker in a process of its own: a request with the id "kill" ends it, all others are answered at once; after one
 * with the id "last" it ends, too.
 */
const [url = "", pool = ""] = process.argv.slice(2);
const instances = new InstantInstances((request) => {
  if (request.id === "kill") process.kill(process.pid, "SIGKILL");
  if (request.id === "last") setTimeout(() => process.kill(process.pid, "SIGKILL"), 2);
  return responseTo(request);
});
const redis = {
  commands: await connect(url, "commands"),
  blocking: await connect(url, "blocking"),
  subscriber: await connect(url, "subscriber"),
};
await PoolWorker.start({
  id: `${process.pid}`,
  pool,
  redis,
  channel: await PoolChannel.open(pool, redis.commands, redis.subscriber),
  concurrency: 4,
  versions: new ResidentVersions({
    budgetBytes: 1,
    find: async () => ({ bytes: 1, start: async () => countedVersion("echo", instances) }),
  }),
  clock: systemClock,
  log: new SilentLog(),
});
process.stdout.write("ready");
