/** The HTTP headers of the protocol, in lower case as node gives them. */
export const inferenceHeaderContentLength = "inference-header-content-length";
