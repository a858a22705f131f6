import { expect } from "vitest";
import { authenticator } from "../../auth/authenticator.ts";
import { createKey, type KeyPurpose, limitKey, revokeKey } from "../../auth/key-changes.ts";
import type { Limits } from "../../auth/limits/limits.ts";
import { KeyRing } from "../../auth/key-ring.ts";
import type { Access } from "../../gateway/access.ts";
import { anyPurpose } from "../auth/key-store-cases.ts";
import { MemoryKeyStore } from "../auth/memory-key-store.ts";
import { eventually } from "../helpers/eventually.ts";
import { SilentLog } from "../helpers/silent-log.ts";

/** Gives out real keys for servers of tests, and takes them back. */
export interface KeyDesk {
  readonly access: Access;
  readonly store: MemoryKeyStore;
  /** A key that counts already. */
  key(purpose?: Partial<KeyPurpose>): Promise<string>;
  /** Resolves when the key has those limits and no others. */
  limit(key: string, limits: Limits): Promise<void>;
  /** Resolves when the key counts no more. */
  revoke(key: string): Promise<void>;
  close(): void;
}

export async function openKeyDesk(healthAnonymous = true): Promise<KeyDesk> {
  const store = new MemoryKeyStore();
  const ring = await KeyRing.open({ store, log: new SilentLog(), lookMilliseconds: 50 });
  return {
    access: { authenticator: authenticator({ keys: ring, tokens: undefined }), healthAnonymous },
    store,
    async key(purpose = {}) {
      const { key } = await createKey(store, { ...anyPurpose, ...purpose }, Date.now());
      store.tell();
      await eventually(() => {
        if (!ring.find(key.id)) throw new Error("not yet");
      });
      return key.text;
    },
    async limit(key, limits) {
      const { id } = await limitKey(store, key.slice(3, 15), limits);
      store.tell();
      await eventually(() => expect(ring.find(id)?.caller.limits).toEqual(limits));
    },
    async revoke(key) {
      const { id } = await revokeKey(store, key.slice(3, 15));
      store.tell();
      await eventually(() => {
        if (ring.find(id)) throw new Error("not yet");
      });
    },
    close: () => ring.close(),
  };
}
