#!/bin/sh
# Checks the page's scripts with TypeScript's checker: check_types.sh WEB_FOLDER
command -v tsc >/dev/null || { echo "tsc is not installed: tools/install_packages.sh tools/packages_slow.txt"; exit 1; }
exec tsc --checkJs --allowJs --noEmit --target es2021 --lib es2021,dom,dom.iterable "$1"/env.d.ts "$1"/*.js
