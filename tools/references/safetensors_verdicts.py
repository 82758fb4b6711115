#!/usr/bin/env python3
"""Writes src/plimsoll/store/testdata/safetensors_verdicts.txt: hostile files, and what the reference says.

    safetensors_verdicts.py OUT

Needs the PyPI package `safetensors` (0.8.0 wrote the committed table). A line is a name, `accept` or
`refuse`, and the file in hexadecimal. The rules that can be read off are listed in store/safetensors.h.
"""
import struct
import sys

import safetensors

F32 = '"dtype":"F32","shape":[1],"data_offsets":[0,4]'
FOUR = b"\0\1\2\3"


def file(header, data=FOUR, length=None):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def one(dtype="F32", shape="[1]", offsets="[0,4]", data=FOUR):
    return file('{"a":{"dtype":"%s","shape":%s,"data_offsets":%s}}' % (dtype, shape, offsets), data)


def nested(depth):
    return file('{"a":{"x":%s%s,%s}}' % ("[" * depth, "]" * depth, F32))


CASES = {
    "plain": one(),
    "empty header object": file("{}", b""),
    "no bytes at all": b"",
    "seven bytes": b"\0" * 7,
    "header of length 0": struct.pack("<Q", 0),
    "header longer than the file": file("{}", b"", 3),
    "header above 100,000,000": file("{}", b"", 100_000_001),
    "header of 2^64 - 1": file("{}", b"", 2**64 - 1),
    "bytes behind the last tensor": one(data=FOUR + b"x"),
    "bytes missing": one(data=FOUR[:3]),
    "bytes and no tensors": file("{}", b"x"),
    "hole before the first tensor": one(offsets="[4,8]", data=FOUR * 2),
    "hole between tensors": file('{"a":{%s},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' % F32, FOUR * 3),
    "overlap": file('{"a":{%s},"b":{%s}}' % (F32, F32)),
    "two tensors": file('{"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"a":{%s}}' % F32, FOUR * 2),
    "end before begin": one(shape="[0]", offsets="[4,0]", data=b""),
    "empty tensors at both ends": file('{"a":{%s},"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"c":{"dtype":"I8","shape":[3,0],"data_offsets":[0,0]}}' % F32),
    "scalar": one(shape="[]"),
    "shape larger than offsets": one(shape="[2]"),
    "shape smaller than offsets": one(shape="[0]"),
    "0 times 2^64 - 1": one(shape="[0,18446744073709551615]", offsets="[0,0]", data=b""),
    "2^64 - 1 times 2 times 0": one(shape="[18446744073709551615,2,0]", offsets="[0,0]", data=b""),
    "bits overflow": one(shape="[576460752303423488]", offsets="[0,0]", data=b""),
    "U8 of 2^61 - 1": one("U8", "[2305843009213693951]", "[0,2305843009213693951]"),
    "extent of 2^64": one(shape="[18446744073709551616]", offsets="[0,0]", data=b""),
    "negative extent": one(shape="[-1]"),
    "minus zero": one(shape="[-0]", offsets="[0,0]", data=b""),
    "extent with a point": one(shape="[1.0]"),
    "extent with an exponent": one(shape="[1e0]"),
    "extent that begins with 0": one(shape="[01]"),
    "extent as a string": one(shape='["1"]'),
    "three offsets": one(offsets="[0,4,4]"),
    "one offset": one(offsets="[0]"),
    "offsets as an object": one(offsets='{"0":0,"1":4}'),
    "unknown dtype": one("F31"),
    "dtype in small letters": one("f32"),
    "F4 odd": one("F4", "[3]", "[0,2]", b"\0\0"),
    "F4 even": one("F4", "[4]", "[0,2]", b"\0\0"),
    "F6 of 24 bits": one("F6_E2M3", "[4]", "[0,3]", b"\0\0\0"),
    "C64": one("C64", "[1]", "[0,8]", FOUR * 2),
    "F8_E8M0": one("F8_E8M0", "[4]", "[0,4]"),
    "description as an array": file('{"a":["F32",[1],[0,4]]}'),
    "short array": file('{"a":["F32",[1]]}'),
    "long array": file('{"a":["F32",[1],[0,4],1]}'),
    "dtype as a map": file('{"a":{"dtype":{"F32":null},"shape":[1],"data_offsets":[0,4]}}'),
    "dtype as a map with a value": file('{"a":{"dtype":{"F32":1},"shape":[1],"data_offsets":[0,4]}}'),
    "dtype as a map of two": file('{"a":{"dtype":{"F32":null,"F32":null},"shape":[1],"data_offsets":[0,4]}}'),
    "dtype as a number": file('{"a":{"dtype":17,"shape":[1],"data_offsets":[0,4]}}'),
    "field missing": file('{"a":{"dtype":"F32","shape":[1]}}'),
    "field twice": file('{"a":{"dtype":"F32",%s}}' % F32),
    "more fields": file('{"a":{"x":[[{"y":null}],true,false,"z",-1.5e3],%s}}' % F32),
    "field name with escapes": file('{"a":{"\\u0064type":"F32","shape":[1],"data_offsets":[0,4]}}'),
    "description null": file('{"a":null}', b""),
    "name twice": file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{%s}}' % F32),
    "name twice, first one wrong": file('{"a":{"dtype":"F32"},"a":{%s}}' % F32),
    "name twice by an escape": file('{"a":{%s},"\\u0061":{%s}}' % (F32, F32)),
    "empty name": file('{"":{%s}}' % F32),
    "name with NUL": file('{"a\\u0000b":{%s}}' % F32),
    "name of a surrogate pair": file('{"\\ud83d\\ude00":{%s}}' % F32),
    "name of half a pair": file('{"\\ud800":{%s}}' % F32),
    "name of the other half": file('{"\\udc00":{%s}}' % F32),
    "name with a control character": file('{"a\x01":{%s}}' % F32),
    "name with DEL": file('{"\x7f":{%s}}' % F32),
    "unknown escape": file('{"\\x":{%s}}' % F32),
    "escaped slash": file('{"\\/":{%s}}' % F32),
    "short escape": file('{"\\u00":{%s}}' % F32),
    "not UTF-8": file(b'{"\xff":{' + F32.encode() + b"}}"),
    "surrogate as UTF-8": file(b'{"\xed\xa0\x80":{' + F32.encode() + b"}}"),
    "long form of UTF-8": file(b'{"\xc0\x80":{' + F32.encode() + b"}}"),
    "byte order mark": file('\ufeff{"a":{%s}}' % F32),
    "space before": file(' \n{"a":{%s}}' % F32),
    "space behind": file('{"a":{%s}}\n\t\r ' % F32),
    "NUL behind": file('{"a":{%s}}\0' % F32),
    "second object": file('{"a":{%s}}{}' % F32),
    "root is an array": file("[]", b""),
    "comma at the end": file('{"a":{%s},}' % F32),
    "comment": file('{/**/"a":{%s}}' % F32),
    "single quotes": file("{'a':{%s}}" % F32),
    "metadata": file('{"__metadata__":{"format":"pt","":""},"a":{%s}}' % F32),
    "metadata null": file('{"__metadata__":null,"a":{%s}}' % F32),
    "metadata twice": file('{"__metadata__":{},"__metadata__":{},"a":{%s}}' % F32),
    "metadata with a number": file('{"__metadata__":{"a":1},"a":{%s}}' % F32),
    "metadata with null": file('{"__metadata__":{"a":null},"a":{%s}}' % F32),
    "metadata key twice": file('{"__metadata__":{"a":"1","a":"2"},"a":{%s}}' % F32),
    "metadata an array": file('{"__metadata__":[],"a":{%s}}' % F32),
    "metadata a tensor": file('{"__metadata__":{%s}}' % F32),
    "NaN": file('{"a":{"x":NaN,%s}}' % F32),
    "number beyond double": file('{"a":{"x":1e999,%s}}' % F32),
    "number below double": file('{"a":{"x":1e-999,%s}}' % F32),
    "whole number of 30 digits": file('{"a":{"x":123456789012345678901234567890,%s}}' % F32),
    "minus alone": file('{"a":{"x":-,%s}}' % F32),
    "point at the end": file('{"a":{"x":1.,%s}}' % F32),
    "half a pair in a value": file('{"a":{"x":"\\ud800",%s}}' % F32),
    "nested 125 deep": nested(125),
    "nested 126 deep": nested(126),
    "nested 1,000 deep": nested(1000),
}


def verdict(content):
    try:
        safetensors.deserialize(content)
        return "accept"
    except Exception:
        return "refuse"


def main():
    lines = [f"{name}\t{verdict(content)}\t{content.hex()}\n" for name, content in CASES.items()]
    with open(sys.argv[1], "w") as out:
        out.writelines(lines)
    print(f"{len(lines)} files, {sum(chr(9) + 'accept' in line for line in lines)} accepted, by safetensors {safetensors.__version__}")


if __name__ == "__main__":
    main()
