import { readFileSync } from "node:fs";
import { type Messages, parseMessages } from "../protocol/messages.ts";

const files = ["model-config.proto", "inference.proto", "health.proto"];

let loaded: Messages | undefined;

/** The protocol's messages, read from the `.proto` files beside the code on the first call. */
export function messages(): Messages {
  loaded ??= parseMessages(files.map(readProto));
  return loaded;
}

function readProto(file: string): string {
  return readFileSync(new URL(`../protocol/proto/${file}`, import.meta.url), "utf8");
}
