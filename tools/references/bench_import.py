#!/usr/bin/env python3
"""Opens and runs a 500 MB model, with its weights inside the file and beside it, and says what that costs.

  python3 tools/references/bench_import.py build/release/plimsoll [megabytes]

Per verb: processor time, the same less `cat FILE > /dev/null`, and the most memory at any time, anonymous (the arena and
whatever else the program takes) and of mapped files. Needs onnx and numpy: exit status 1 without them and when a verb that
does not run the model takes a second more than reading the file, or when running it takes more than one copy and 150 MB.
Each measurement is the best of three."""
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    sys.exit(f"{missing}: tools/install_python.sh FOLDER makes a Python that has it")

WIDE, NARROW = 2048, 1024
SLACK = 150e6


def write(folder, megabytes):
    """A table of a third of the bytes, then pairs of products."""
    elements = megabytes * 10**6 // 4
    rows = elements // 3 // NARROW
    random = np.random.default_rng(0)
    weights = [numpy_helper.from_array(random.standard_normal((rows, NARROW), dtype=np.float32), "table")]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["h0"])]
    layers = (elements - rows * NARROW) // (2 * WIDE * NARROW)
    for i in range(layers):
        for name, shape in ((f"a{i}", (NARROW, WIDE)), (f"b{i}", (WIDE, NARROW))):
            weights.append(numpy_helper.from_array(random.standard_normal(shape, dtype=np.float32) / 32, name))
        nodes += [helper.make_node("MatMul", [f"h{i}", f"a{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"r{i}"]),
                  helper.make_node("MatMul", [f"r{i}", f"b{i}"], [f"h{i + 1}"])]
    graph = helper.make_graph(nodes, "big", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 8])],
                              [helper.make_tensor_value_info(f"h{layers}", TensorProto.FLOAT, [1, 8, NARROW])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "embedded.onnx"))
    onnx.save(model, str(folder / "external.onnx"), save_as_external_data=True, location="external.data")


def follow(command):
    """Processor seconds, which a busy machine does not stretch, and the most anonymous and all resident bytes seen."""
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    start = spent()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    anonymous = resident = 0
    while process.poll() is None:
        try:
            fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
            of = {name: int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "VmHWM") if name in fields}
            anonymous, resident = max(anonymous, of.get("RssAnon", 0)), max(resident, of.get("VmHWM", 0))
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.002)
    if process.wait() != 0:
        sys.exit(f"{command}: exit status {process.returncode}")
    return spent() - start, anonymous, resident


def main():
    program = sys.argv[1]
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, megabytes)
        for kind, data in (("embedded", "embedded.onnx"), ("external", "external.data")):
            reading = min(follow(["cat", folder / data])[0] for _ in range(3))
            size = (folder / data).stat().st_size
            print(f"{kind}: {size / 1e6:.0f} MB, reading them takes {reading:.2f} s")
            for verb in (["memory"], ["graph"], ["run", "--random", "--steps", "1"]):
                seconds, anonymous, resident = min(follow([program, verb[0], folder / f"{kind}.onnx", *verb[1:]]) for _ in range(3))
                print(f"  {verb[0]:8}{seconds:6.2f} s, {seconds - reading:5.2f} s beyond reading; at most {anonymous / 1e6:5.0f} MB anonymous, "
                      f"{resident / 1e6:5.0f} MB with mapped files", flush=True)
                if verb[0] == "run":
                    bad += resident > size + SLACK
                else:
                    bad += seconds - reading > 1 or resident > SLACK
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
