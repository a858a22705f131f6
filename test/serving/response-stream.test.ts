import { describe, expect, it } from "vitest";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse, StreamedResponse } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { ResponseStream } from "../../serving/response-stream.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const mebibyte = 1024 * 1024;

function stream() {
  const call = new Call(anonymous, 0);
  const clock = new FakeClock();
  const responses = new ResponseStream(call, clock);
  return { call, clock, responses, reader: responses[Symbol.asyncIterator]() };
}

/** A response with so many bytes. */
function response(id: string, size = 0): InferenceResponse {
  const bytes = new Uint8Array(size);
  const output = { name: "OUT", datatype: "UINT8", shape: [size], bytes } as const;
  return { modelName: "m", modelVersion: "1", id, outputs: [output], parameters: noParameters };
}

async function read(reader: AsyncIterable<StreamedResponse>): Promise<unknown[]> {
  const seen = [];
  for await (const { response: next, final } of reader) seen.push([next.id, final]);
  return seen;
}

/** True for a promise that nobody has settled yet. */
function isOpen(promise: Promise<unknown> | undefined): Promise<boolean> {
  return Promise.race([promise?.then(() => false), Promise.resolve().then(() => true)]).then(
    (open) => open === true && promise !== undefined,
  );
}

describe("ResponseStream", () => {
  it("gives up a reader who takes nothing while others wait for it", async () => {
    const { call, clock, responses, reader } = stream();
    const minutes = 60_000;
    for (const id of ["a", "b", "c", "d"]) responses.send(response(id, mebibyte), false);
    await clock.advance(4 * minutes);
    await reader.next();
    await reader.next();
    await clock.advance(4 * minutes);
    expect(call.cancelled).toBeUndefined();
    await clock.advance(1 * minutes);
    expect(call.cancelled?.message).toContain("given none read for 300 s");
    for (let i = 0; i < 2; i++) await reader.next();
    await expect(reader.next()).rejects.toThrow("none read for 300 s");
    expect(clock.timers).toBe(0);
  });

  it("waits for no reader who has read enough", async () => {
    const { clock, responses, reader } = stream();
    for (const id of ["a", "b", "c"]) responses.send(response(id, mebibyte / 2), false);
    expect(clock.timers).toBe(1);
    for (let i = 0; i < 3; i++) await reader.next();
    expect(clock.timers).toBe(0);
  });

  it("gives what came before the reader and what comes while it waits, and ends without a last one", async () => {
    const { responses, reader } = stream();
    responses.send(response("a"), false);
    const seen = read(reader);
    responses.send(response("b"), false);
    await new Promise(setImmediate);
    responses.send(response("c"), false);
    responses.send(undefined, true);
    expect(await seen).toEqual([
      ["a", false],
      ["b", false],
      ["c", false],
    ]);
  });

  it("tells which response is the last one, where the model does", async () => {
    const { responses, reader } = stream();
    responses.send(response("a"), false);
    responses.send(response("b"), true);
    expect(await read(reader)).toEqual([
      ["a", false],
      ["b", true],
    ]);
  });

  it("throws a failure after the responses before it, and takes nothing more", async () => {
    const { responses, reader } = stream();
    responses.send(response("a"), false);
    responses.fail(new InferenceError(StatusCode.Internal, "it broke"));
    responses.send(response("b"), true);
    responses.fail(new InferenceError(StatusCode.Internal, "again"));
    expect(await reader.next()).toMatchObject({ value: { response: { id: "a" } } });
    await expect(reader.next()).rejects.toThrow("it broke");
  });

  it("asks who can to wait while much is unread", async () => {
    const { responses, reader } = stream();
    responses.send(response("a", mebibyte / 2), false);
    expect(responses.room).toBeUndefined();
    responses.send(response("b", mebibyte / 2), false);
    const { room } = responses;
    expect(await isOpen(room)).toBe(true);
    await reader.next();
    expect(await isOpen(room)).toBe(true);
    await reader.next();
    await room;
    expect(responses.room).toBeUndefined();
  });

  it("lets go of who waits when the reader leaves", async () => {
    const { responses, reader } = stream();
    responses.send(response("a", 2 * mebibyte), false);
    const { room } = responses;
    await reader.next();
    expect(await isOpen(room)).toBe(true);
    await reader.return(undefined);
    await room;
  });

  it("gives up on a reader that leaves too much unread, and cancels the request", async () => {
    const { call, responses, reader } = stream();
    const large = response("large", 64 * mebibyte);
    for (let i = 0; i < 4; i += 1) responses.send(large, false);
    expect(call.cancelled).toBeUndefined();
    responses.send(large, false);
    expect(call.cancelled?.code).toBe("UNAVAILABLE");
    for (let i = 0; i < 4; i += 1) await reader.next();
    await expect(reader.next()).rejects.toThrow(
      "responses that the client has not read: given more than 268435456 bytes",
    );
  });

  it("takes any number of responses for a reader that reads", async () => {
    const { call, responses, reader } = stream();
    const large = response("large", 64 * mebibyte);
    for (let i = 0; i < 10; i += 1) {
      responses.send(large, false);
      expect((await reader.next()).done).toBe(false);
    }
    expect(call.cancelled).toBeUndefined();
  });
});
