"""``python -m benchmarks [NAME ...]``: run the rows and print the table."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from . import report
from .machine import describe
from .measure import Bench, Row, Size
from .rows import ROWS

EXAMPLES = """\
examples:
  python -m benchmarks                       every row at the usual size, some minutes
  python -m benchmarks admission queue       these rows only
  python -m benchmarks --full                as published: 10^6 rows, 10,000 cancellations
  SMTSPOOL_CORPUS=DIR python -m benchmarks   real queries instead of the sample campaign
  taskset -c 0 python -m benchmarks small    both sides on one CPU

rows:
"""
OUTPUT = Path("build/bench.json")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    size = Size[options.size.upper()]
    corpus = os.environ.get("SMTSPOOL_CORPUS")
    options.work.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.work) as work:
        bench = Bench(size, options.seed, Path(work), Path(corpus) if corpus else None, _say)
        machine = describe(bench.work)
        for name in options.names or ROWS:
            _say(f"{name}: {ROWS[name].title}")
            try:
                rows.extend(ROWS[name].run(bench))
            except ModuleNotFoundError as error:
                missing.append(f"{name}: {error.name} is not installed; `make bench` installs it")
    _say("")
    run = {"size": size.name.lower(), "seed": options.seed, "corpus": bool(corpus), "finished": time.time()}
    contents = report.document(rows, machine, run)
    report.write(options.output, contents)
    if options.json:
        print(json.dumps(contents, ensure_ascii=False))
    else:
        report.print_table(rows, machine)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, ROWS))
    listing = "\n".join(f"  {name:<{width}}  {row.title}" for name, row in ROWS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed against the limits and the peers. A missed bar is printed, it is not a failure.",
        epilog=EXAMPLES + listing,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # argparse checks the empty list as well, when no name is given.
    names = [[], *ROWS]
    parser.add_argument("names", nargs="*", choices=names, metavar="NAME", help="which rows; all by default")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", dest="size", action="store_const", const="full", help="as published; hours")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help="to see that it runs")
    parser.set_defaults(size="usual")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn at random (default 1)")
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"where the JSON goes (default {OUTPUT})")
    parser.add_argument("--work", type=Path, default=OUTPUT.parent, help="directory on the disk to measure")
    return parser


def _say(text: str) -> None:
    """Progress, on a terminal only; one line that is written over."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
