"""Reading the kernel's table of mounts; for diagnosis only."""

from __future__ import annotations

from pathlib import Path

import pytest

from smtspool.cluster.mounts import UNKNOWN, Mount, is_distributed, mount_of

TABLE = """\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 21 0:26 / /mnt/a\\040b rw - nfs4 server:/a\\011b rw
31 21 0:27 / /mnt rw master:1 shared:2 - tmpfs tmpfs rw
32 21 0:28 / /mnt rw - fuse.sshfs host: rw
broken
40 21 0:29 / /mnt/short
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/mnt/a b/c", Mount("/mnt/a b", "nfs4", "server:/a\tb")),
        ("/mnt/other", Mount("/mnt", "fuse.sshfs", "host:")),
        ("/mnt", Mount("/mnt", "fuse.sshfs", "host:")),
        ("/mntother", Mount("/", "ext4", "/dev/vda")),
        ("/", Mount("/", "ext4", "/dev/vda")),
    ],
)
def test_the_last_mount_with_the_longest_point_counts(tmp_path: Path, path: str, expected: Mount) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    assert mount_of(path, table) == expected


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert mount_of("/", tmp_path / "nothing") == UNKNOWN
    (tmp_path / "empty").write_text("")
    assert mount_of("/", tmp_path / "empty") == UNKNOWN


@pytest.mark.parametrize("kind", ["nfs4", "NFS", "lustre", "ceph", "fuse.glusterfs", "fuse.sshfs", "9p"])
def test_types_of_several_hosts(kind: str) -> None:
    assert is_distributed(kind)


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "fuse", "fuse.bindfs", "unknown", ""])
def test_types_of_one_host(kind: str) -> None:
    assert not is_distributed(kind)
