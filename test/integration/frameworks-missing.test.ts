import path from "node:path";
import { describe, expect, it } from "vitest";
import { errorOf } from "../helpers/http-client.ts";
import { serving } from "../helpers/serving.ts";
import { pythonModel } from "../helpers/python-models.ts";

const clients = path.resolve(import.meta.dirname, "../../.tidepool/venv/bin/python");
const tensors = `
  input [{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }] output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]`;

const files: Readonly<Record<string, string>> = {
  pytorch_libtorch: "model.pt",
  tensorflow_savedmodel: "model.savedmodel/saved_model.pb",
  tensorflow_graphdef: "model.graphdef",
  tensorrt_plan: "model.plan",
};

describe("a server whose Python has no framework", () => {
  const running = serving(
    (models) => {
      for (const [platform, file] of Object.entries(files)) {
        models.write(`${platform}/1/${file}`, "a model");
        models.write(`${platform}/config.pbtxt`, `platform: "${platform}" ${tensors}`);
      }
      models.write("openvino/1/model.xml", "<net/>");
      models.write("fileless/config.pbtxt", `platform: "pytorch_libtorch" ${tensors}`);
      models.write("fileless/1/other.pt", "a model");
      pythonModel(models, "echo", tensors, echo);
    },
    `--python=${clients}`,
    "--model-control-mode=explicit",
    "--load-model=echo",
  );

  async function refusal(model: string): Promise<string> {
    return errorOf(await running.http.post(`/v2/repository/models/${model}/load`));
  }

  it.for([
    ["pytorch_libtorch", "PyTorch", "pip install torch"],
    ["tensorflow_savedmodel", "TensorFlow", "pip install tensorflow-cpu"],
    ["tensorflow_graphdef", "TensorFlow", "pip install tensorflow-cpu"],
    ["openvino", "OpenVINO", "pip install openvino"],
  ] as const)("refuses %s and says what to install", async ([model, title, install]) => {
    const reason = await refusal(model);
    expect(reason).toContain(
      `${title} is not installed in the Python that runs the model: ${install}`,
    );
    expect(reason).toContain("--python, TIDEPOOL_PYTHON, and the parameter EXECUTION_ENV_PATH");
    expect(reason).not.toContain(running.models.path);
  });

  it("refuses a plan of TensorRT, which needs a GPU and a package", async () => {
    const reason = await refusal("tensorrt_plan");
    // The first is what a machine with a GPU says.
    expect(reason).toMatch(/TensorRT is not installed|a TensorRT plan needs an NVIDIA GPU/u);
    expect(reason).toContain("pip install tensorrt");
  });

  it("refuses a model whose file is not there", async () => {
    expect(await refusal("fileless")).toContain("unable to find 'model.pt' for model 'fileless'");
  });

  it("gives the reason in the index, and serves other models", async () => {
    await refusal("openvino");
    const index = JSON.parse((await running.http.post("/v2/repository/index")).text);
    expect(index).toContainEqual(
      expect.objectContaining({
        name: "openvino",
        state: "UNAVAILABLE",
        reason: expect.stringContaining("OpenVINO is not installed"),
      }),
    );
    const input = { name: "x", datatype: "FP32", shape: [1], data: [2] };
    const { text } = await running.http.infer("echo", { inputs: [input] });
    expect(JSON.parse(text).outputs).toMatchObject([{ name: "y", data: [2] }]);
  });
});

const echo = `
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", array)]) for array in given]
`;
