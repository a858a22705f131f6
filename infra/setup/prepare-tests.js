import { bringDebianPackage, onPath } from "./debian.js";
import { bringNode } from "./node.js";
import { installPackages } from "./packages.js";
import { bringPerfAnalyzer } from "./perf-analyzer.js";
import { installPython } from "./python.js";
import { bringVersitygw } from "./versitygw.js";
import { bringRedis } from "./redis.js";

/** Everything that the tests need beside the sources. */
export async function prepareTests() {
  await bringNode();
  await installPackages();
  await installPython();
  if (!onPath("prometheus")) await bringDebianPackage("prometheus");
  if (!onPath("openssl")) await bringDebianPackage("openssl");
  await bringRedis();
  await bringPerfAnalyzer();
  await bringVersitygw();
}
