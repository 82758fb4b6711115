#!/bin/sh
# What `make run` does: the main job on its embedded default.
set -eu
"$1" --help
