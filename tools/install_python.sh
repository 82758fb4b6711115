#!/bin/sh
# Makes a virtual environment with the packages of a list, unless it is there: install_python.sh FOLDER [python_slow.txt]
set -eu
wanted=$(dirname "$0")/${2:-python_slow.txt}
cmp -s "$wanted" "$1/installed.txt" && exit 0
echo "installing into $1: $(grep -v '^#' "$wanted" | tr '\n' ' ')" >&2
python3 -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
cp "$wanted" "$1/installed.txt"
