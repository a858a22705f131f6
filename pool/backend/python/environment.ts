/** Variables that a model's process inherits: where programs and libraries are, and settings of frameworks. */
const inherited =
  /^(?:PATH|HOME|USER|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHONPATH|VIRTUAL_ENV|(?:https?|no|all)_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE)$|^(?:CUDA|NVIDIA|OMP|KMP|OPENBLAS|MKL|NUMEXPR|HF|TRANSFORMERS|TOKENIZERS|TORCH|PYTORCH|TF|XLA|OPENVINO|NLTK|TRITON)_/iu;

/** The environment of a Python process: not what this server keeps for itself, such as keys and addresses. */
export function processEnvironment(
  own: NodeJS.ProcessEnv,
  cores: number,
): Readonly<Record<string, string>> {
  const environment: Record<string, string> = {
    // Unless told otherwise a numerical library starts a thread for each core, in each instance.
    OMP_NUM_THREADS: String(cores),
    OPENBLAS_NUM_THREADS: String(cores),
    MKL_NUM_THREADS: String(cores),
    PYTHONUNBUFFERED: "1",
    PYTHONIOENCODING: "utf-8",
  };
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && inherited.test(name)) environment[name] = value;
  }
  return environment;
}
