/** An event of S3 that tells of one object. */
export function s3Event(
  key: string,
  more: Readonly<Record<string, string>> = {},
): { readonly Records: readonly object[] } {
  return {
    Records: [
      {
        eventVersion: "2.2",
        eventSource: "aws:s3",
        eventName: "ObjectCreated:Put",
        eventTime: "2026-11-22T02:33:53.000Z",
        ...more,
        s3: { bucket: { name: "models" }, object: { key, size: 1, sequencer: "0A" } },
      },
    ],
  };
}
