import type { UntypedHandleCall } from "@grpc/grpc-js";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import {
  type GivenLogSettings,
  logSettingChanges,
  logSettingFields,
} from "../log-setting-changes.ts";
import type { GrpcOptions } from "./options.ts";
import { unaryMethod } from "./unary-method.ts";

/** A `SettingValue`: at most one of its values is there. */
interface SettingValue {
  readonly boolParam?: boolean;
  readonly uint32Param?: number;
  readonly stringParam?: string;
}

type Settings = Readonly<Record<string, SettingValue>>;

/** LogSettings: changes what the request names, and answers how things are then. */
export function logSettingsMethod(options: GrpcOptions): UntypedHandleCall {
  const { logSettings } = options;
  return unaryMethod(
    "LogSettings",
    ({ settings }, _caller, change) => {
      const changes = logSettingChanges(givenSettings(settings));
      change?.tell(changes);
      if (Object.keys(changes).length > 0) logSettings.update(changes);
      const fields = Object.entries(logSettingFields(logSettings.get()));
      return { settings: Object.fromEntries(fields.map(([key, value]) => [key, wire(value)])) };
    },
    options,
  );
}

function givenSettings(settings: Settings): GivenLogSettings {
  const read =
    <Value>(type: string, valueOf: (given: SettingValue) => Value | undefined) =>
    (name: string): Value | undefined => {
      const given = settings[name];
      if (!given) return undefined;
      const value = valueOf(given);
      if (value === undefined) throw expected(type, name);
      return value;
    };
  return {
    has: (name) => settings[name] !== undefined,
    boolean: read("boolean", ({ boolParam }) => boolParam),
    unsigned: read("int32", ({ uint32Param }) => uint32Param),
    string: read("string", ({ stringParam }) => stringParam),
    formatName: "log_format",
  };
}

function wire(value: string | boolean | number): SettingValue {
  if (typeof value === "boolean") return { boolParam: value };
  return typeof value === "number" ? { uint32Param: value } : { stringParam: value };
}

function expected(type: string, key: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, `expect ${type} for '${key}'`);
}
