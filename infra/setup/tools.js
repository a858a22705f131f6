import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { root } from "./paths.js";

/**
 * The script behind a program of node_modules.
 *
 * @param {string} program
 * @returns {string}
 */
export function toolScript(program) {
  const link = path.join(root, "node_modules", ".bin", program);
  if (!existsSync(link)) throw new Error(`${program} is not in node_modules/.bin`);
  return realpathSync(link);
}
