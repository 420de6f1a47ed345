"""Whatever is put into ``incoming/``: no scan fails, and every entry ends in exactly one place, unchanged."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.spool import Spool
from tests.spool.support import BROKEN, Ledger, envelope, folder, scan

characters = st.binary(min_size=1, max_size=12).map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"0"))
names = st.builds(
    lambda pad, stem, suffix: (pad + stem + suffix)[-255:],
    st.sampled_from([b"", b".", b"x" * 243, b"\xff" * 250]),
    characters,
    st.sampled_from([b".json", b".smt2", b".error", b".tmp", b".json.error", b""]),
).filter(lambda name: name not in (b".", b".."))
kinds = st.sampled_from(["file", "directory", "fifo", "link"])
contents = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([BROKEN, envelope(1), envelope(2), b"(check-sat)", b"[" * 2000, b"{}", b"(" * 2000]),
)
entries = st.dictionaries(names, st.tuples(kinds, contents), max_size=8)


def put(path: Path, kind: str, content: bytes) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("nowhere")
    else:
        path.write_bytes(content)


def inodes(root: Path, name: str) -> dict[int, str]:
    return {(root / name / entry).lstat().st_ino: entry for entry in folder(root, name)}


@settings(max_examples=60)
@given(passes=st.lists(entries, min_size=1, max_size=3))
def test_any_entries(passes: list[dict[bytes, tuple[str, bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as folder_of_this_example:
        root = Path(folder_of_this_example).resolve() / "spool"
        with Spool.open(root, create=True) as spool, Ledger(root.parent / "ledger") as ledger:
            published: set[int] = set()
            hidden: set[int] = set()
            for made in passes:
                for name, (kind, content) in made.items():
                    path = root / "incoming" / os.fsdecode(name)
                    if os.path.lexists(path):  # a temporary name of an earlier pass
                        continue
                    put(path, kind, content)
                    temporary = name.startswith(b".") or name.endswith(b".tmp")
                    (hidden if temporary else published).add(path.lstat().st_ino)
                report = scan(spool, ledger)
                assert report.deferred == 0
            rejected = inodes(root, "rejected")
            sidecars = {ino for ino, name in rejected.items() if name.endswith(".error")}
            assert inodes(root, "incoming").keys() == hidden
            assert inodes(root, "accepted").keys() | (rejected.keys() - sidecars) == published
            assert {rejected[ino].removesuffix(".error") for ino in sidecars} == {
                rejected[ino] for ino in rejected.keys() - sidecars
            }
