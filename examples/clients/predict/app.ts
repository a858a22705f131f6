import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { classifyFiles } from "./classify-files.ts";
import type { Ensemble } from "./ensemble.ts";

const maxFiles = 1000;
const maxBodyBytes = 256 * 2 ** 20;

/** Answers `POST /predict`: pictures come as multipart parts named `files`, and each gets one result, in their order. */
export function predictApp(ensemble: Ensemble): Hono {
  const app = new Hono();
  const onError = (): Response =>
    Response.json({ error: `expected a body of at most ${maxBodyBytes} bytes` }, { status: 413 });
  app.post("/predict", bodyLimit({ maxSize: maxBodyBytes, onError }), async (context) => {
    const form = await context.req.formData().catch(() => undefined);
    if (!form) return context.json({ error: "expected a body of multipart/form-data" }, 400);
    const parts = form.getAll("files");
    if (parts.length < 1 || parts.length > maxFiles) {
      const error = `given ${parts.length} parts named 'files', expected 1 to ${maxFiles}`;
      return context.json({ error }, 400);
    }
    // A part without a file name is text.
    const files = parts.map((part) => (typeof part === "string" ? new File([part], "") : part));
    return context.json({ results: await classifyFiles(files, ensemble) });
  });
  return app;
}
