"""Arrays in .npz files without numpy, which `make test` does not need: as much of the format as the tests use."""
import ast
import io
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B"}


def _header(dtype, shape):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def save(path, compressed=False, **arrays):
    """Each array is (dtype, shape, numbers)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, (dtype, shape, numbers) in arrays.items():
            archive.writestr(name + ".npy", _header(dtype, shape) + struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers))


def load(path):
    """{name: (dtype, shape, numbers)}"""
    out = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            stream = io.BytesIO(archive.read(member))
            stream.read(8)
            header = ast.literal_eval(stream.read(struct.unpack("<H", stream.read(2))[0]).decode())
            data = stream.read()
            code = CODES[header["descr"]]
            out[member.removesuffix(".npy")] = (header["descr"], header["shape"], list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)))
    return out
