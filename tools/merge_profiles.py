#!/usr/bin/env python3
"""One profile of a card from profiles of several models on it: rates are medians, operators those of all of them.

  python3 tools/merge_profiles.py gpu1.json gpu2.json ... --name h200 --note "an H200, measured ..." -o src/plimsoll/schedule/profiles/h200.json

Each is what `plimsoll profile MODEL --device cuda --tf32 [--amp bf16] -o FILE` wrote. All must be of one card and one version of its libraries: signatures do
not say whether products of fp32 were rounded, so profiles with --tf32 and without it cannot be one file. An operator that several models have is kept
with the least of its times. Seconds are rounded to four digits. Shares of the roofline (`efficiency`) are those of models, not of the card, and are left
out. With --base, an earlier profile of the card, what was not measured this time stays, and rates that --tf32 hides or no profile measures are its own."""
import argparse
import json
import pathlib
import statistics
import sys

SAME = ("schema", "memory_bytes")
LEFT_OUT = ("efficiency",)
OF_THE_BASE = ("operations_per_second", "disk", "link")  # under --tf32 a product of fp32 has TF32's rate


def four_digits(number):
    return float(f"{number:.4g}") if isinstance(number, float) else number


def median_of(values):
    """Of numbers, or of objects number by number; keys that only some have are theirs."""
    if isinstance(values[0], dict):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: median_of([value[key] for value in values if key in value]) for key in keys}
    if all(value == values[0] for value in values):
        return four_digits(values[0])
    if not all(isinstance(value, (int, float)) for value in values):
        raise ValueError(f"{values[0]!r} and another value cannot be one")
    return four_digits(statistics.median(values))


def merge(profiles, name, note):
    for key in SAME:
        if len({profile[key] for profile in profiles}) > 1:
            raise ValueError(f"they differ in {key}: they are not of one device")
    cards = [profile.get("card", {}) for profile in profiles]
    for key in ("instruction_set", "library"):
        found = sorted({card.get(key, "") for card in cards})
        if len(found) > 1:
            raise ValueError(f"they differ in card.{key}: {', '.join(found)}")
    measured, kernels = {}, {}
    for profile, card in zip(profiles, cards):
        for signature, seconds in profile.get("measured", {}).items():
            measured[signature] = min(seconds, measured.get(signature, seconds))
        for signature, facts in card.get("kernels", {}).items():
            if kernels.setdefault(signature, facts) != facts:
                raise ValueError(f"two kernels for {signature[:120]}: {kernels[signature]} and {facts}")
    rates = [{key: value for key, value in profile.items() if key not in ("name", "note", "measured", "card", *LEFT_OUT)} for profile in profiles]
    out = {"schema": profiles[0]["schema"], "name": name, "note": note}
    out |= {key: value for key, value in median_of(rates).items() if key != "schema"}
    if cards[0]:
        out["card"] = cards[0] | {"kernels": dict(sorted(kernels.items()))}
    out["measured"] = {signature: four_digits(seconds) for signature, seconds in sorted(measured.items())}
    return out


def keep_what_is_missing(merged, base):
    """Operators that were not measured this time, as an earlier profile of the same card and libraries has them."""
    for key in ("instruction_set", "library"):
        if merged["card"][key] != base["card"][key]:
            raise ValueError(f"the base differs in card.{key}: {base['card'][key]}")
    missing = [signature for signature in base["measured"] if signature not in merged["measured"]]
    for signature in missing:
        merged["measured"][signature] = base["measured"][signature]
        if signature in base["card"]["kernels"]:
            merged["card"]["kernels"][signature] = base["card"]["kernels"][signature]
    merged |= {key: base[key] for key in OF_THE_BASE if key in base}
    for part in (merged, merged["card"]):
        key = "measured" if part is merged else "kernels"
        part[key] = dict(sorted(part[key].items()))
    return len(missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+")
    parser.add_argument("--name", required=True)
    parser.add_argument("--note", required=True)
    parser.add_argument("--base", help="an earlier profile: what was not measured this time stays")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    read = [json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in options.profiles]
    try:
        merged = merge(read, options.name, options.note)
        kept = keep_what_is_missing(merged, json.loads(pathlib.Path(options.base).read_text(encoding="utf-8"))) if options.base else 0
    except ValueError as problem:
        sys.exit(f"merge_profiles: {problem}")
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(merged, file, indent=1)
        file.write("\n")
    engines = sum("engine" in facts for facts in merged.get("card", {}).get("kernels", {}).values())
    print(f"{len(read)} profiles: {len(merged['measured'])} operators, {engines} with engines, {kept} of the base")


if __name__ == "__main__":
    main()
