/** `npm test`: sets up what is missing, Python clients and Prometheus too, and runs the tests; arguments go to vitest. */
import { command } from "./command.js";
import { prepareTests } from "./prepare-tests.js";
import { launch } from "./launch.js";
import { toolScript } from "./tools.js";

await command(async () => {
  await prepareTests();
  return launch([toolScript("vitest"), "run", ...process.argv.slice(2)]);
});
