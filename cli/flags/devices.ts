import { noEffect, refused, replaced } from "../flag.ts";
import { boolean, choice, integer, path, port, positiveNumber, text } from "../flag-type.ts";

const noCache = "responses are not cached";
const noPools = "memory comes from the runtime as it is needed";
const noSagemaker = "the SageMaker endpoint is not part of this server";
const noVertex = "the Vertex AI endpoint is not part of this server";

/** Caches, devices and clouds: flags that commands written for Triton carry. */
export const deviceFlags = {
  "cache-config": noEffect(text, noCache),
  "response-cache-byte-size": replaced(
    integer(0),
    "cache-config",
    (bytes) => `local,size=${bytes}`,
  ),
  "cache-directory": noEffect(path, noCache),
  "rate-limit": noEffect(choice("execution_count", "off"), "the rate limiter is off"),
  "rate-limit-resource": noEffect(text, "the rate limiter is off"),
  "pinned-memory-pool-byte-size": noEffect(integer(0), noPools),
  "cuda-memory-pool-byte-size": noEffect(text, noPools),
  "cuda-virtual-address-size": noEffect(text, noPools),
  "buffer-manager-thread-count": noEffect(integer(0), "batches are put together in one copy"),
  "min-supported-compute-capability": noEffect(
    positiveNumber,
    "the runtime decides which GPUs it can use",
  ),
  "enable-peer-access": noEffect(boolean, "GPUs do not copy between each other"),
  "host-policy": noEffect(text, "the system decides which cores run what"),
  "allow-client-shm": refused(boolean, "shared memory of clients is not supported yet", "false"),
  "allow-sagemaker": refused(boolean, noSagemaker, "false"),
  "sagemaker-port": noEffect(port, noSagemaker),
  "sagemaker-safe-port-range": noEffect(text, noSagemaker),
  "sagemaker-thread-count": noEffect(integer(1), noSagemaker),
  "allow-vertex-ai": refused(boolean, noVertex, "false"),
  "vertex-ai-port": noEffect(port, noVertex),
  "vertex-ai-thread-count": noEffect(integer(1), noVertex),
  "vertex-ai-default-model": noEffect(text, noVertex),
};
