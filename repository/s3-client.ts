import type * as sdkTypes from "@aws-sdk/client-s3";

/** Where S3 is, and how it is spoken to. */
export interface S3ClientOptions {
  /** Of a server other than Amazon's. */
  readonly endpoint?: string | undefined;
  /** Where the SDK's own sources name none, there is none. */
  readonly region?: string | undefined;
  /** The bucket's name stands in the path, and not in the host's name. */
  readonly pathStyle: boolean;
}

export interface OpenedS3 {
  readonly sdk: typeof sdkTypes;
  readonly client: sdkTypes.S3Client;
}

const connectMilliseconds = 5000;

/** Makes a client of S3. The SDK is loaded here, so that a process that needs no S3 does not pay for it. */
export async function openS3({ endpoint, region, pathStyle }: S3ClientOptions): Promise<OpenedS3> {
  const sdk = await import("@aws-sdk/client-s3");
  const client = new sdk.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    forcePathStyle: pathStyle,
    followRegionRedirects: true,
    // Tries are counted in one place, which also knows about bodies that break off.
    maxAttempts: 1,
    // The SDK could check whole objects only; parts are checked together once they are on disk.
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: connectMilliseconds },
  });
  return { sdk, client };
}
