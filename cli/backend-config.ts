import { UsageError } from "./usage-error.ts";

/** What `--backend-config` settles. */
export interface BackendConfig {
  /** `max_batch_size` of a model whose graph allows batches and whose config says nothing about them. */
  readonly defaultMaxBatchSize: number;
  /** One line for each setting that changes nothing here. */
  readonly warnings: readonly string[];
}

const setting = /^(?:(?<backend>[\w-]*),)?(?<name>[\w-]+)=(?<value>.*)$/u;

/** Reads settings written `<backend>,<name>=<value>`; one without a backend is for all of them. */
export function parseBackendConfig(texts: readonly string[]): BackendConfig {
  let defaultMaxBatchSize = 4;
  const warnings: string[] = [];
  for (const text of texts) {
    const { backend = "", name, value } = setting.exec(text)?.groups ?? {};
    if (name === undefined || value === undefined) {
      throw new UsageError(`--backend-config: given '${text}', expected <backend>,<name>=<value>`);
    }
    const ours = backend === "" || backend === "onnxruntime";
    if (ours && name === "default-max-batch-size") defaultMaxBatchSize = parseBatchSize(value);
    else warnings.push(`--backend-config=${text} has no effect here: no backend knows the setting`);
  }
  return { defaultMaxBatchSize, warnings };
}

function parseBatchSize(value: string): number {
  if (/^\d{1,9}$/u.test(value)) return Number(value);
  throw new UsageError(
    `--backend-config: given default-max-batch-size=${value}, expected an integer, 0 or more`,
  );
}
