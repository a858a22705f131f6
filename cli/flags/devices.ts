import { flag, noEffect, refused, repeated } from "../flag.ts";
import { boolean, choice, integer, port, positiveNumber, text } from "../flag-type.ts";
import { resourceLimit } from "../resource-limit.ts";

const noPools = "memory comes from the runtime as it is needed";
const noSagemaker = "the SageMaker endpoint is not part of this server";
const noVertex = "the Vertex AI endpoint is not part of this server";

/** Caches, devices and clouds: flags that commands written for Triton carry. */
export const deviceFlags = {
  "rate-limit": flag(
    choice("execution_count", "off"),
    "off",
    "execution_count: run instances only while the resources are free that their model names.",
  ),
  "rate-limit-resource": repeated(
    resourceLimit,
    "How much there is of a resource, as in R1:4, or on one device, as in R1:4:0.",
  ),
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
  "allow-client-shm": flag(
    boolean,
    false,
    "Let clients on this machine share their memory with the server, instead of sending tensors.",
  ),
  "allow-sagemaker": refused(boolean, noSagemaker, "false"),
  "sagemaker-port": noEffect(port, noSagemaker),
  "sagemaker-safe-port-range": noEffect(text, noSagemaker),
  "sagemaker-thread-count": noEffect(integer(1), noSagemaker),
  "allow-vertex-ai": refused(boolean, noVertex, "false"),
  "vertex-ai-port": noEffect(port, noVertex),
  "vertex-ai-thread-count": noEffect(integer(1), noVertex),
  "vertex-ai-default-model": noEffect(text, noVertex),
};
