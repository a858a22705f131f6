import path from "node:path";

/** Where the set-up finds the repository and keeps what it brings: all of it below one folder that git ignores. */
export const root = path.resolve(import.meta.dirname, "../..");

/** @param {string[]} parts below the ignored folder */
export const local = (...parts) => path.join(root, ".tidepool", ...parts);
