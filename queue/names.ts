/**
 * Every key and channel that tidepool has in Redis. The keys of one pool share a hash tag, so that a cluster keeps them
 * on one node and a pipeline may touch several of them.
 */
export const names = {
  /** BullMQ's prefix for the queue of a pool; see {@link queueName}. */
  queuePrefix: (pool: string) => tag(pool),
  /** The requests of one envelope: a hash with all of them as one value, and marks. What is large has a key of its own. */
  envelope: (pool: string, id: string) => `${tag(pool)}:envelope:${id}`,
  /** What a pool worker must know to start a version. */
  ticket: (pool: string, version: string) => `${tag(pool)}:ticket:${version}`,
  /** What came of starting a version for the first time. */
  opened: (pool: string, version: string) => `${tag(pool)}:opened:${version}`,
  /** The files that a load request brought along: a hash of contents by path. */
  files: (pool: string, fingerprint: string) => `${tag(pool)}:files:${fingerprint}`,
  /** A hash: what each process has counted of one version. */
  statistics: (pool: string, version: string) => `${tag(pool)}:statistics:${version}`,
  /** In place of a pool, for what gateways have counted of ensembles; no pool has this name. */
  poolOfEnsembles: "*",
  /** A hash: what each pool worker says of itself, with the time of its word. */
  poolWorkers: (pool: string) => `${tag(pool)}:pool-workers`,
  /** A list: envelopes that only one pool worker can run, because it has their sequences. */
  sequenceLine: (pool: string, poolWorker: string) => `${tag(pool)}:sequence-line:${poolWorker}`,
  /** A hash: which pool worker has a sequence, and how many requests it was sent. */
  sequence: (pool: string, digest: string) => `${tag(pool)}:sequence:${digest}`,
  /** A durable request: a hash. What is large of it has a key of its own. */
  job: (pool: string, id: string) => `${tag(pool)}:job:${id}`,
  jobRequest: (pool: string, id: string) => `${tag(pool)}:job-request:${id}`,
  jobResult: (pool: string, id: string) => `${tag(pool)}:job-result:${id}`,
  /** A sorted set: the durable requests that have not ended, by the time that they came. */
  unfinishedJobs: (pool: string) => `${tag(pool)}:unfinished-jobs`,
  /** A sorted set: the durable requests of one principal, by their place. */
  jobsOf: (pool: string, owner: string) => `${tag(pool)}:jobs-of:${owner}`,
  /** A sorted set: what receivers have not been told yet of jobs that have ended, by the time that they did. */
  undeliveredWebhooks: (pool: string) => `${tag(pool)}:undelivered-webhooks`,
  /** A hash: how many of those each tenant has. */
  webhooksOfTenants: (pool: string) => `${tag(pool)}:webhooks-of-tenants`,
  /** A list: the attempts to tell the receiver of a job. */
  deliveries: (pool: string, id: string) => `${tag(pool)}:deliveries:${id}`,
  /** BullMQ's prefix for the queue of webhooks, which all pools share. */
  webhookQueuePrefix: "{tidepool-webhooks}",
  /** A hash: what came of all attempts, by outcome. */
  webhookAttempts: "tidepool:webhook-attempts",
  /** Is there when a gateway tells the trace of that attempt at a job. */
  tracedAttempt: (id: string) => `tidepool:traced-attempt:${id}`,
  /** What an idempotency key stands for. */
  idempotencyKey: (digest: string) => `tidepool:idempotency:${digest}`,
  /** Written so that Redis can be asked whether it is on disk, and with it all that was written before. */
  diskMark: "tidepool:disk-mark",
  /** A hash: the virtual time by which tenants share the pool. */
  virtualTime: (pool: string) => `${tag(pool)}:virtual-time`,
  /** A sorted set: the virtual finish of what each tenant has sent last. */
  virtualFinishes: (pool: string) => `${tag(pool)}:virtual-finishes`,
  /** A hash: how many requests each gateway waits for, with the time of its word. */
  demand: (pool: string) => `${tag(pool)}:demand`,
  /** A hash: what all pool workers have counted together. */
  counters: (pool: string) => `${tag(pool)}:counters`,
  /** A list of reply bundles: what a gateway has to read. */
  replies: (gateway: string) => `tidepool:replies:{${gateway}}`,
  /** A reply too large for the list. */
  replyPayload: (gateway: string, id: string) => `tidepool:reply:{${gateway}}:${id}`,
  /** Is there for as long as the gateway lives. */
  gateway: (gateway: string) => `tidepool:gateway:{${gateway}}`,
  /** A hash: which models were loaded or unloaded on request, for gateways that start later, and how many such wishes there were. */
  control: "tidepool:control",
  /** A hash: the files that came with the last load of a model, by path. */
  controlFiles: (model: string) => `tidepool:control-files:${model}`,
  /** Which gateway adds up what processes have counted that are gone. */
  statisticsLease: "tidepool:statistics",
  /** Which autoscaler acts. */
  autoscalerLease: "tidepool:autoscaler",
  /** Channels. */
  poolChannel: (pool: string) => `tidepool:pool:${pool}`,
  controlChannel: "tidepool:control",
  cacheFlushChannel: "tidepool:cache-flush",
} as const;

/** The name of each pool's only queue below its prefix, as BullMQ's tools show it. */
export const queueName = "requests";

function tag(pool: string): string {
  return `{tidepool:${pool}}`;
}
