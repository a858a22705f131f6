/** A custom parameter: boolean, string, bigint for the protocol's int64 and uint64, number for its double. */
export type ParameterValue = boolean | bigint | number | string;

/** Custom parameters of a request or response by name; the protocol's own ones have fields of their own. */
export type Parameters = ReadonlyMap<string, ParameterValue>;

export const noParameters: Parameters = new Map();
