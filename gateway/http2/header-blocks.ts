import { HpackDecoder } from "./hpack-decoder.ts";
import type { HeaderField } from "./hpack-tables.ts";
import { type RequestHead, requestHead } from "./request-head.ts";
import { ConnectionError, ErrorCode } from "./wire.ts";

/** Of a block as it comes, and of the list of fields in it. */
export const maxHeaderBytes = 64 * 1024;

/** A block may come in so many frames. */
const maxFrames = 16;

/** A block that has begun. */
interface Begun {
  readonly stream: number;
  /** The request has no body. */
  readonly endsStream: boolean;
  readonly pieces: Buffer[];
}

export type Block = Omit<Begun, "pieces"> & { readonly bytes: Buffer };

/** Puts blocks together and reads them. A client sends the same one before each request: what it said is remembered. */
export class HeaderBlocks {
  readonly #decoder = new HpackDecoder(maxHeaderBytes);
  #begun: Begun | undefined;
  #lastBlock = Buffer.alloc(0);
  #lastHead: RequestHead | undefined;
  #lastChanges = -1;

  /** True amid a block: nothing else may come. */
  get isOpen(): boolean {
    return this.#begun !== undefined;
  }

  begin(stream: number, endsStream: boolean): void {
    this.#begun = { stream, endsStream, pieces: [] };
  }

  /** The block, when this was its end. */
  add(stream: number, piece: Buffer, isLast: boolean): Block | undefined {
    const begun = this.#begun;
    if (!begun || begun.stream !== stream) {
      throw new ConnectionError(ErrorCode.ProtocolError, "CONTINUATION: given without HEADERS");
    }
    const { pieces, endsStream } = begun;
    pieces.push(piece);
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    if (pieces.length > maxFrames || size > maxHeaderBytes) {
      const text = `header block: given more than ${maxFrames} frames or ${maxHeaderBytes} bytes`;
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, text);
    }
    if (!isLast) return undefined;
    this.#begun = undefined;
    const bytes = pieces.length === 1 ? piece : Buffer.concat(pieces, size);
    return { stream, endsStream, bytes };
  }

  /** The fields of a block; undefined where they are too many. */
  fields({ bytes }: Block): readonly HeaderField[] | undefined {
    return this.#decoder.decode(bytes);
  }

  /** The request that a block begins; "malformed" or "too large" where it begins none. */
  head(block: Block): RequestHead | "malformed" | "too large" {
    const decoder = this.#decoder;
    const before = decoder.changes;
    if (this.#lastHead && before === this.#lastChanges && block.bytes.equals(this.#lastBlock)) {
      return this.#lastHead;
    }
    const fields = this.fields(block);
    if (!fields) return "too large";
    const head = requestHead(fields);
    if (!head) return "malformed";
    // One that changed the table would mean something else the next time.
    if (decoder.changes === before) {
      this.#lastBlock = Buffer.from(block.bytes);
      this.#lastHead = head;
      this.#lastChanges = before;
    }
    return head;
  }
}
