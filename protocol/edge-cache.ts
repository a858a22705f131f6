/**
 * The header by which a gateway tells the edge Worker that it may keep an answer: `metadata`, or the digest of the
 * version that answered. Clients never see it.
 */
export const edgeCacheHeader = "tidepool-edge-cache";

/** Its value where the answer is about the server or a model whose responses may not be kept. */
export const keepMetadata = "metadata";
