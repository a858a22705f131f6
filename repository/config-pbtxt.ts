import type { ModelConfig } from "../protocol/model-config.ts";
import { configError } from "./config-text/message-tree.ts";
import { maxConfigLength, readConfig } from "./read-config.ts";
import { parseTextFormat } from "./config-text/text-format.ts";

/**
 * Reads a `config.pbtxt`: protobuf text format of the model config, defaults filled in.
 * @throws INVALID_ARG with the file's name, the line and what was expected there.
 */
export function parseConfigPbtxt(text: string, fileName: string): ModelConfig {
  if (text.length > maxConfigLength) {
    throw configError(
      fileName,
      `the file has ${text.length} characters, at most ${maxConfigLength} are read`,
    );
  }
  return readConfig(parseTextFormat(text, fileName), textSyntax);
}

const textSyntax = { quotedScalars: false, camelCase: false, mapIsMessage: false, lastWins: false };
