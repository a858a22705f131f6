import type { Socket } from "node:net";
import type { Server, TlsOptions, TLSSocket } from "node:tls";
import type { Logger } from "../../telemetry/logger.ts";
import type { CertificateFiles } from "./certificate-files.ts";

/** How a port is secured. */
export interface PortTls {
  readonly certificate: CertificateFiles;
  readonly log: Logger;
  /** So long may a handshake take. @defaultValue 10_000 */
  readonly handshakeMilliseconds?: number;
}

/** Connections that have not said enough yet to be read. */
export interface Handshakes {
  /** Ends those that are under way. */
  readonly end: () => void;
}

/** OpenSSL's word for a client that began with a request of HTTP instead of a handshake. */
const spokePlainly = "ERR_SSL_HTTP_REQUEST";

const plainText = '{"error":"this port speaks TLS: given a request without it, expected https"}';
const plainAnswer =
  "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n" +
  `Content-Length: ${plainText.length}\r\n\r\n${plainText}`;

/** What a server is made with. @param protocol that clients may ask for (ALPN); others are refused in the handshake */
export function secureOptions(
  { certificate, handshakeMilliseconds = 10_000 }: PortTls,
  protocol: "h2" | "http/1.1",
): TlsOptions {
  return {
    ...certificate.context,
    requestCert: certificate.asksClients,
    ALPNProtocols: [protocol],
    handshakeTimeout: handshakeMilliseconds,
  };
}

/** Keeps a server with the newest certificate, and ends the connections that do not get through the handshake. */
export function secure(server: Server, { certificate, log }: PortTls): Handshakes {
  const underWay = new Map<string, Socket>();
  certificate.onChange(() => server.setSecureContext(certificate.context));
  server.on("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    underWay.set(peer, socket);
    socket.once("close", () => {
      if (underWay.get(peer) === socket) underWay.delete(peer);
    });
  });
  server.on("secureConnection", (socket) => {
    underWay.delete(peerOf(socket));
    if (certificate.asksClients && log.verboseLevel > 0) logClient(socket, log);
  });
  // node's own HTTPS server would try to tell in plain words.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (err, socket) => {
    const peer = peerOf(socket);
    const reason = "code" in err ? err.code : err.message;
    log.verbose(1, "a TLS handshake failed", { peer, reason });
    const below = reason === spokePlainly ? underWay.get(peer) : undefined;
    if (below) below.end(plainAnswer, () => socket.destroy());
    else socket.destroy();
  });
  return {
    end() {
      for (const socket of underWay.values()) socket.destroy();
    },
  };
}

/** The socket below and the one above know nothing of each other, but have the same peer. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function logClient(socket: TLSSocket, log: Logger): void {
  const subject = socket.getPeerX509Certificate()?.subject;
  log.verbose(1, "a client showed its certificate", { peer: peerOf(socket), subject });
}
