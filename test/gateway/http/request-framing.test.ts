import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { rawConnection } from "../../helpers/raw-connection.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

const body = '{"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[1]}]}';
const hexLength = body.length.toString(16);
const inChunks = `${hexLength}\r\n${body}\r\n0\r\n\r\n`;
const host = "Host: x";
const length = `Content-Length: ${body.length}`;
const chunked = "Transfer-Encoding: chunked";

let stand: HttpStand;
/** Its calls are all read by node: a header might be one that is to be passed on. */
let nodeStand: HttpStand;
/** So often did the model run that is called behind each request. */
let ran = 0;

beforeAll(async () => {
  stand = await HttpStand.start();
  nodeStand = await HttpStand.start({ headerForwardPattern: /^never$/u });
  const config = {
    input: [modelInput("IN0", "TYPE_FP32", [1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [1])],
  };
  for (const { engine } of [stand, nodeStand]) {
    engine.add(servedModel("behind", config), (request) => {
      ran += 1;
      return [echo(request)];
    });
  }
});
afterAll(async () => {
  await stand.stop();
  await nodeStand.stop();
});

function post(lines: readonly string[], sent = body, model = "id_fp32", version = "1.1"): string {
  const head = [`POST /v2/models/${model}/infer HTTP/${version}`, ...lines];
  return `${head.join("\r\n")}\r\n\r\n${sent}`;
}

const usual = post([host, length]);
const behind = post([host, length], body, "behind");
const noHttp = "the request is not valid HTTP/1.1";
const noHost = "Host: given what is none, expected a name or an address, and a port or none";
const twoHosts = "Host: given 2 times, expected once";
const noCoding = "Transfer-Encoding: given another one, expected chunked";

/** What is sent, and the status and the error that it gets. */
type Case = readonly [bytes: string, status: number, error: string];

const refused: Readonly<Record<string, Case>> = {
  "no Host": [post([length]), 400, "Host: given none, expected one"],
  "no Host, and a wish to be asked": [
    post([length, "Expect: 100-continue"]),
    400,
    "Host: given none, expected one",
  ],
  "two different Hosts": [post([host, "Host: y", length]), 400, twoHosts],
  "two equal Hosts": [post([host, "HOST: x", length]), 400, twoHosts],
  "two Hosts in HTTP/1.0": [post([host, host, length], body, "id_fp32", "1.0"), 400, twoHosts],
  "two Hosts, and an upgrade": [
    post([host, host, "Connection: upgrade", "Upgrade: websocket", length]),
    400,
    twoHosts,
  ],
  "two Hosts, and an unknown wish": [post([host, host, "Expect: x", length]), 400, twoHosts],
  "a Host with a blank": [post(["Host: x y", length]), 400, noHost],
  "a Host that is a list": [post(["Host: x,y", length]), 400, noHost],
  "a Host with a path": [post(["Host: x/y", length]), 400, noHost],
  "a Host with a user": [post(["Host: x@y", length]), 400, noHost],
  "a Host with a port that is no number": [post(["Host: x:y", length]), 400, noHost],
  "two different lengths": [post([host, length, "Content-Length: 5"]), 400, noHttp],
  "two equal lengths": [post([host, length, length]), 400, noHttp],
  "a list of lengths": [post([host, `${length}, ${body.length}`]), 400, noHttp],
  "a length and chunks": [post([host, length, chunked], inChunks), 400, noHttp],
  "chunks and a length": [post([host, chunked, length], inChunks), 400, noHttp],
  "a length with a plus": [post([host, `Content-Length: +${body.length}`]), 400, noHttp],
  "a length below zero": [post([host, `Content-Length: -${body.length}`]), 400, noHttp],
  "a hexadecimal length": [post([host, `Content-Length: 0x${hexLength}`]), 400, noHttp],
  "a length of two numbers": [post([host, "Content-Length:  5 5"]), 400, noHttp],
  "a length with a fraction": [post([host, `${length}.0`]), 400, noHttp],
  "a length of nothing": [post([host, "Content-Length:"]), 400, noHttp],
  "a length beyond all numbers": [post([host, `Content-Length: ${"9".repeat(30)}`]), 400, noHttp],
  "a folded line": [post([host, "Via: x\r\n y", length]), 400, noHttp],
  "a folded length": [post([host, `Content-Length:\r\n\t${body.length}`]), 400, noHttp],
  "a first line that is folded": [post([` ${host}`, length]), 400, noHttp],
  "a bare CR in a value": [post([host, "Via: x\ry", length]), 400, noHttp],
  "a bare CR between lines": [post([`${host}\r${length}`]), 400, noHttp],
  "a bare LF in a value": [post([host, "Via: x\ny", length]), 400, noHttp],
  "a bare LF between lines": [post([`${host}\n${length}`]), 400, noHttp],
  "bare LFs only": [usual.replaceAll("\r\n", "\n"), 400, noHttp],
  "a blank before the colon": [post([host, `Content-Length : ${body.length}`]), 400, noHttp],
  "a blank before the colon of a coding": [
    post([host, length, "Transfer-Encoding : chunked"]),
    400,
    noHttp,
  ],
  "a tab before the colon": [post([host, "Via\t: x", length]), 400, noHttp],
  "a NUL in a value": [post([host, "Via: x\0y", length]), 400, noHttp],
  "a NUL in a name": [post([host, "Vi\0a: x", length]), 400, noHttp],
  "a line without a name": [post([host, ": x", length]), 400, noHttp],
  "a line without a colon": [post([host, "Via", length]), 400, noHttp],
  "chunked twice": [post([host, chunked, chunked], inChunks), 400, noHttp],
  "chunked twice in a list": [post([host, `${chunked}, chunked`], inChunks), 400, noHttp],
  "chunked before another coding": [post([host, `${chunked}, identity`], inChunks), 400, noHttp],
  "identity before chunked": [
    post([host, "Transfer-Encoding: identity, chunked"], inChunks),
    501,
    noCoding,
  ],
  "gzip before chunked": [
    post([host, "Transfer-Encoding: gzip, chunked"], inChunks),
    501,
    noCoding,
  ],
  "gzip and chunked in two lines": [
    post([host, "Transfer-Encoding: gzip", chunked], inChunks),
    501,
    noCoding,
  ],
  "another coding, and a length": [post([host, "Transfer-Encoding: x", length]), 400, noHttp],
  "a coding without a name": [post([host, "Transfer-Encoding:", length]), 400, noHttp],
  "a coding behind a vertical tab": [
    post([host, "Transfer-Encoding: \vchunked"], inChunks),
    400,
    noHttp,
  ],
  "a chunk's length with a plus": [post([host, chunked], `+${inChunks}`), 400, noHttp],
  "a chunk's length with 0x": [post([host, chunked], `0x${inChunks}`), 400, noHttp],
  "a chunk's length with a bare LF": [
    post([host, chunked], inChunks.replace("\r\n", "\n")),
    400,
    noHttp,
  ],
  "a chunk's length with a blank": [
    post([host, chunked], inChunks.replace("\r\n", " \r\n")),
    400,
    noHttp,
  ],
  "a chunk's length beyond all numbers": [
    post([host, chunked], `${"f".repeat(17)}\r\n${body}`),
    400,
    noHttp,
  ],
  "a chunk longer than it says": [
    post([host, chunked], inChunks.replace("}\r\n", "}x\r\n")),
    400,
    noHttp,
  ],
  "an unknown wish": [
    post([host, length, "Expect: x"]),
    417,
    "Expect: given another one, expected 100-continue",
  ],
  "an unknown version": [post([host, length], body, "id_fp32", "1.2"), 400, noHttp],
};

const taken: Readonly<Record<string, string>> = {
  "a name": usual,
  "a name and a port": post(["Host: a-b.c_d:8000", length]),
  "an address in brackets": post(["Host: [2001:db8::1]:8000", length]),
  "an empty Host, as RFC 9110 has it for what has no name": post(["Host:", length]),
  "an empty Host on the router's way": "GET /v2 HTTP/1.1\r\nHost:\r\n\r\n",
  chunks: post([host, "transfer-encoding: CHUNKED"], inChunks),
};

/** The ways by which a request comes to be read. */
const ways: readonly (readonly [name: string, stand: () => HttpStand, before: string])[] = [
  ["the first request of a connection", () => stand, ""],
  ["a request behind a plain one", () => stand, usual],
  ["a request that node reads", () => nodeStand, ""],
];

const answerStart = /(?=HTTP\/1\.1 [2-5]\d\d )/u;

async function send(to: HttpStand, before: string, bytes: string) {
  const connection = await rawConnection(to.origin.slice(7), before);
  const answers = (): string[] => String(connection.received).split(answerStart).filter(Boolean);
  const earlier = before === "" ? 0 : 1;
  await eventually(() => expect(answers()).toHaveLength(earlier));
  connection.socket.write(bytes);
  return { ...connection, later: () => answers().slice(earlier) };
}

describe.each(ways)("%s", (_, at, before) => {
  it.each(Object.entries(refused))(
    "is refused with %s, and all that comes behind it",
    async (__, [bytes, status, error]) => {
      const runs = ran;
      for (const sent of [bytes, bytes + behind]) {
        // oxlint-disable-next-line no-await-in-loop -- only the first of them may be read without node
        const { ended, later } = await send(at(), before, sent);
        // oxlint-disable-next-line no-await-in-loop
        await ended;
        const answers = later();
        expect(answers).toHaveLength(1);
        const [head = "", text = ""] = answers[0]?.split("\r\n\r\n") ?? [];
        expect(head).toMatch(
          new RegExp(`^HTTP/1\\.1 ${status} .*\r\nConnection: close(?:\r|$)`, "su"),
        );
        expect(JSON.parse(text)).toEqual({ error });
      }
      expect(ran).toBe(runs);
    },
  );

  it.each(Object.entries(taken))("is answered with %s, and so is the next", async (__, bytes) => {
    const runs = ran;
    const { socket, later } = await send(at(), before, bytes + behind);
    await eventually(() => expect(later()).toHaveLength(2));
    expect(later().map((answer) => answer.slice(0, 13))).toEqual(Array(2).fill("HTTP/1.1 200 "));
    expect(ran).toBe(runs + 1);
    socket.destroy();
  });

  it("needs no Host in HTTP/1.0", async () => {
    const { ended, later } = await send(at(), before, "GET /v2/health/live HTTP/1.0\r\n\r\n");
    await ended;
    expect(later()[0]).toMatch(/^HTTP\/1\.1 200 /u);
  });
});
