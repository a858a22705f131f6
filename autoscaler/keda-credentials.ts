import type { SecureContextOptions } from "node:tls";
import { ServerCredentials } from "@grpc/grpc-js";

/** What the port proves itself with; it may become another one at any time. */
export interface KedaTls {
  readonly context: SecureContextOptions;
  /** True where every client must show a certificate that `context` knows the signer of. */
  readonly asksClients: boolean;
  onChange(listener: () => void): void;
}

/** Credentials of a gRPC server that follow a certificate: new connections get the newest, open ones stay. */
export function kedaCredentials(tls: KedaTls | undefined): ServerCredentials {
  return tls ? new FollowingCredentials(tls) : ServerCredentials.createInsecure();
}

class FollowingCredentials extends ServerCredentials {
  constructor(tls: KedaTls) {
    super({ requestCert: tls.asksClients }, tls.context);
    tls.onChange(() => this.updateSecureContextOptions(tls.context));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
