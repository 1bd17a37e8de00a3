#!/usr/bin/env bash
# Builds the pages and opens every one of them in a browser without a screen. Installs Debian's chromium and Python's playwright if they are
# missing, so it needs root, apt and pip's index the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v chromium > /dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }
make docs
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]' playwright
.venv/bin/python -m pytest -m slow tests/docs/test_site.py "$@"
