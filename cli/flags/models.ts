import { flag, noEffect, refused, repeated, replaced } from "../flag.ts";
import { boolean, choice, integer, path, positiveNumber, text } from "../flag-type.ts";

/** Where models come from and when they load. */
export const modelFlags = {
  "model-repository": repeated(
    path,
    "Folder of models, or s3://[host:port/]bucket/prefix. A model in two of them is not served.",
  ),
  "model-store": replaced(path, "model-repository"),
  "model-control-mode": flag(
    choice("none", "poll", "explicit"),
    "none",
    "none: load every model at the start. poll: follow changes on disk. explicit: load on request.",
  ),
  "load-model": repeated(
    text,
    "Model to load at the start in explicit mode; '*' alone stands for all.",
  ),
  "repository-poll-secs": flag(integer(1, 86_400), 15, "Seconds between two looks in poll mode."),
  "model-config-name": flag(
    text,
    "",
    "Prefer configs/<name>.pbtxt of a model to its config.pbtxt.",
  ),
  "disable-auto-complete-config": flag(
    boolean,
    false,
    "Take configs as they are, instead of completing them from the model file.",
  ),
  "strict-model-config": replaced(boolean, "disable-auto-complete-config"),
  "exit-on-error": flag(boolean, true, "End when a model fails to load at the start."),
  "strict-readiness": flag(boolean, true, "Be ready only when every model is."),
  "model-load-thread-count": flag(integer(1, 1024), 4, "Models that load at the same time."),
  "warmup-timeout-secs": flag(
    positiveNumber,
    600,
    "Seconds that all samples of model_warmup may take on one instance.",
  ),
  "split-oversized-batches": flag(
    boolean,
    false,
    "Split a batch over max_batch_size instead of refusing it.",
  ),
  "backend-config": repeated(
    text,
    "Setting of a backend, as in onnxruntime,default-max-batch-size=4.",
  ),
  "model-load-retry-count": noEffect(
    integer(0),
    "a load that fails is tried again when the files change or a client asks",
  ),
  "model-namespacing": refused(boolean, "models are found by their name alone", "false"),
  "model-load-gpu-limit": noEffect(text, "the limit of a GPU's memory is not watched"),
  "backend-directory": noEffect(path, "backends are part of this server"),
  "repoagent-directory": noEffect(path, "repository agents are not supported"),
};

/** Versions that clients bring. */
export const uploadFlags = {
  "allow-uploads": flag(
    boolean,
    false,
    "Take versions of models from clients that may, as tidepool push sends them, into the repository.",
  ),
  "upload-max-mb": flag(integer(1), 65_536, "Largest version that is taken, in MiB."),
  "upload-keep-secs": flag(
    integer(1),
    86_400,
    "Seconds after which an upload that was not finished is forgotten.",
  ),
};
