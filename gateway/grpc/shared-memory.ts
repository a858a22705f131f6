import type { UntypedHandleCall } from "@grpc/grpc-js";
import { cudaStatus, registerCuda } from "../shared-memory/cuda-regions.ts";
import { SharedMemoryRegions } from "../shared-memory/regions.ts";
import type { GrpcOptions } from "./options.ts";
import type { GrpcMethods } from "./services.ts";
import { type Answer, unaryMethod } from "./unary-method.ts";

/** The methods by which clients share regions of their memory with the server. */
export function sharedMemoryMethods(options: GrpcOptions): GrpcMethods {
  const { sharedMemory: regions = new SharedMemoryRegions(false) } = options;
  const method = (name: string, answer: Answer): UntypedHandleCall =>
    unaryMethod(name, answer, options);
  return {
    SystemSharedMemoryStatus: method("SystemSharedMemoryStatus", ({ name }) => ({
      regions: Object.fromEntries(regions.status(name).map((region) => [region.name, region])),
    })),
    SystemSharedMemoryRegister: method(
      "SystemSharedMemoryRegister",
      ({ name, key, offset, byteSize }, _caller, change) => {
        change?.tell({ key, offset, byteSize });
        regions.register({ name, key, offset, byteSize });
        return {};
      },
    ),
    SystemSharedMemoryUnregister: method("SystemSharedMemoryUnregister", ({ name }) => {
      regions.unregister(name);
      return {};
    }),
    CudaSharedMemoryStatus: method("CudaSharedMemoryStatus", ({ name }) => {
      cudaStatus(name, regions);
      return {};
    }),
    CudaSharedMemoryRegister: method("CudaSharedMemoryRegister", ({ name }) => registerCuda(name)),
    CudaSharedMemoryUnregister: method("CudaSharedMemoryUnregister", () => ({})),
  };
}
