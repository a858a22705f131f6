import { apiCategories, type ApiCategory } from "../gateway/api-category.ts";
import type { Restriction, Restrictions } from "../gateway/restrictions.ts";
import type { FlagType } from "./flag-type.ts";
import { UsageError } from "./usage-error.ts";

/** One restriction of the command line: some parts of the API, and what opens them. */
export interface RestrictedCategories {
  readonly categories: readonly ApiCategory[];
  readonly restriction: Restriction;
}

const written = /^(?<names>[^:]+):(?<key>[\w.-]+)=(?<value>.+)$/u;

/** As in `inference,model-repository:admin-key=secret`. */
export const restrictedCategories: FlagType<RestrictedCategories> = {
  name: "category,category:header=value",
  parse(given) {
    const { names = "", key = "", value = "" } = written.exec(given)?.groups ?? {};
    const categories = names.split(",");
    return categories.every(isCategory) ? { categories, restriction: { key, value } } : undefined;
  },
};

/** What several flags restrict together; throws a UsageError for a category in two of them. */
export function restrictionsOf(flag: string, all: readonly RestrictedCategories[]): Restrictions {
  const restrictions = new Map<ApiCategory, Restriction>();
  for (const { categories, restriction } of all) {
    for (const category of new Set(categories)) {
      if (restrictions.has(category)) {
        throw new UsageError(`--${flag}: given '${category}' twice, expected every category once`);
      }
      restrictions.set(category, restriction);
    }
  }
  return restrictions;
}

function isCategory(name: string): name is ApiCategory {
  return apiCategories.some((category) => category === name);
}
