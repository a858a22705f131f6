import { invalidArgument } from "../../protocol/error.ts";

/** So much of a resource an instance holds while it runs. */
export interface ResourceNeed {
  readonly name: string;
  /** Each device has its own; undefined: all instances share it, on whatever device. */
  readonly device: number | undefined;
  readonly count: number;
}

/** So much there is of a resource: on one device, or, without one, on each. */
export interface ResourceLimit {
  readonly name: string;
  readonly count: number;
  readonly device?: number;
}

/** What is left of each resource, by its key. */
export type FreeResources = Map<string, number>;

/** The resources that instances take while they run. Without limits there is as much of each as the neediest instance takes. */
export class Resources {
  readonly #limits: readonly ResourceLimit[];
  readonly #needs = new Set<readonly ResourceNeed[]>();
  readonly #used = new Map<string, number>();
  #capacity: ReadonlyMap<string, number> = new Map();

  /** @param limits one that is given twice counts as the smaller one */
  constructor(limits: readonly ResourceLimit[]) {
    const smallest = new Map<string, ResourceLimit>();
    for (const limit of limits.toSorted((a, b) => b.count - a.count))
      smallest.set(`${limit.device} ${limit.name}`, limit);
    this.#limits = [...smallest.values()];
  }

  /**
   * Instances with such needs will run.
   * @throws INVALID_ARG in the reference's words when one of them never could; then none is added.
   */
  add(instances: readonly (readonly ResourceNeed[])[]): void {
    this.#capacity = this.#capacityFor([...this.#needs, ...instances]);
    for (const needs of instances) this.#needs.add(needs);
  }

  /** They will not run again. */
  remove(instances: readonly (readonly ResourceNeed[])[]): void {
    for (const needs of instances) this.#needs.delete(needs);
    this.#capacity = this.#capacityFor([...this.#needs]);
  }

  free(): FreeResources {
    const free = new Map(this.#capacity);
    for (const [key, used] of this.#used) free.set(key, (free.get(key) ?? 0) - used);
    return free;
  }

  take(needs: readonly ResourceNeed[]): void {
    for (const need of needs) this.#use(need, need.count);
  }

  giveBack(needs: readonly ResourceNeed[]): void {
    for (const need of needs) this.#use(need, -need.count);
  }

  #use(need: ResourceNeed, count: number): void {
    const key = resourceKey(need);
    const used = (this.#used.get(key) ?? 0) + count;
    if (used === 0) this.#used.delete(key);
    else this.#used.set(key, used);
  }

  #capacityFor(instances: readonly (readonly ResourceNeed[])[]): ReadonlyMap<string, number> {
    const most = new Map<string, ResourceNeed>();
    for (const need of instances.flat()) {
      const key = resourceKey(need);
      if (need.count >= (most.get(key)?.count ?? 0)) most.set(key, need);
    }
    const needs = [...most.values()];
    for (const need of needs) this.#checkLimit(need);
    checkScopes(needs);
    return new Map(needs.map((need) => [resourceKey(need), this.#limitOf(need) ?? need.count]));
  }

  #checkLimit(need: ResourceNeed): void {
    const limit = this.#limitOf(need) ?? Infinity;
    if (need.count <= limit) return;
    throw invalidArgument(
      `Resource count for "${need.name}" is limited to ${limit} which will prevent scheduling of one or more ` +
        `model instances, the minimum required count is ${need.count}`,
    );
  }

  /** As soon as anything is limited, there is nothing of what is not named. */
  #limitOf({ name, device }: ResourceNeed): number | undefined {
    if (this.#limits.length === 0) return undefined;
    const counts = this.#limits
      .filter((limit) => limit.name === name)
      .filter((limit) => device === undefined || (limit.device ?? device) === device)
      .map(({ count }) => count);
    return Math.max(0, ...counts);
  }
}

/** Equal for needs that are met from the same stock. */
export function resourceKey({ name, device }: ResourceNeed): string {
  return `${device ?? "global"} ${name}`;
}

function checkScopes(needs: readonly ResourceNeed[]): void {
  const global = new Set(needs.flatMap(({ name, device }) => (device === undefined ? name : [])));
  const both = needs.find(({ name, device }) => device !== undefined && global.has(name));
  if (!both) return;
  throw invalidArgument(
    `Resource "${both.name}" is present as both global and device-specific resource in the model configuration.`,
  );
}
