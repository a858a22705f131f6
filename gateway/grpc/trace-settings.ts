import type { UntypedHandleCall } from "@grpc/grpc-js";
import { invalidArgument } from "../../protocol/error.ts";
import type { DataPlane } from "../data-plane.ts";
import {
  checkTracedModel,
  type GivenTraceSettings,
  requiredTracer,
  traceSettingChanges,
  traceSettingFields,
} from "../trace-setting-changes.ts";
import type { GrpcOptions } from "./options.ts";
import { unaryMethod } from "./unary-method.ts";

type Settings = Readonly<Record<string, { readonly value: readonly string[] }>>;

/** TraceSetting: changes what the request names, and answers which requests are traced then. */
export function traceSettingsMethod(plane: DataPlane, options: GrpcOptions): UntypedHandleCall {
  return unaryMethod(
    "TraceSetting",
    async ({ settings, modelName }, _caller, change) => {
      const tracer = requiredTracer(options.tracer);
      await checkTracedModel(plane, modelName);
      const changes = traceSettingChanges(givenSettings(settings));
      change?.tell({ ...changes });
      if (Object.keys(changes).length > 0) tracer.update(modelName, changes);
      const fields = Object.entries(traceSettingFields(tracer, modelName));
      return { settings: Object.fromEntries(fields.map(([name, value]) => [name, { value }])) };
    },
    options,
  );
}

/** A setting without a value is taken back. */
function givenSettings(settings: Settings): GivenTraceSettings {
  const texts = (name: string): readonly string[] | null | undefined => {
    const values = settings[name]?.value;
    return values?.length === 0 ? null : values;
  };
  return {
    has: (name) => settings[name] !== undefined,
    texts,
    text: (name) => {
      const values = texts(name);
      if (!values) return values;
      if (values.length > 1) throw invalidArgument(`expect only 1 value for '${name}'`);
      return values[0];
    },
    countGot: "got: ",
  };
}
