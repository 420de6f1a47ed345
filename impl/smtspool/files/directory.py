"""A directory held by descriptor: the anchor that every other file operation is relative to.

Every component of a path is opened without following links; F364 §8.5 leaves all but the last one open. So a
parent that is replaced by a link cannot redirect a spool that is already open, and opening through such a
link is an error that names it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from types import TracebackType
from typing import Self

from smtspool.errors import ClosedError

__all__ = ["Directory"]

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | _NOFOLLOW
# A parent may grant passage (x) without listing (r); O_PATH asks only for passage.
_PASS = _LIST | getattr(os, "O_PATH", 0)

_RENAME_NOREPLACE = 1
_NO_SUCH_RENAME = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_NO_SUCH_LINK = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

_libc = ctypes.CDLL(None, use_errno=True)
_renameat2 = getattr(_libc, "renameat2", None)
if _renameat2 is not None:
    _renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_syncfs = getattr(_libc, "syncfs", None)


class Directory:
    """An open directory. All names are single components, relative to it, and never followed if links.

    Names that are not UTF-8 are ``str`` with surrogate escapes, as ``os.fsdecode`` gives them. Operations
    raise ``OSError``. Close it, or use it as a context manager; afterwards they raise ``ClosedError``.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path  # for messages and notification only; never opened again

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Directory:
        """Open ``path`` component by component from "/" (or the working directory) without following links.

        ``create`` makes what is missing. A component that is a link or no directory raises
        ``NotADirectoryError`` with its path and the remedy. A platform without ``O_NOFOLLOW`` is refused:
        there is no weaker way to do this.
        """
        if not hasattr(os, "O_NOFOLLOW"):
            raise OSError(errno.EOPNOTSUPP, "this platform has no O_NOFOLLOW, and there is no weaker way")
        text = os.fspath(path)
        parts = [part for part in text.split("/") if part not in ("", ".")]
        reached = "/" if text.startswith("/") else "."
        fd = os.open(reached, _PASS if parts else _LIST)
        try:
            for position, part in enumerate(parts, 1):
                reached = f"{reached.rstrip('/')}/{part}" if reached != "." else part
                flags = _LIST if position == len(parts) else _PASS
                below = _open_child(fd, part, flags, create, reached)
                fd, above = below, fd
                os.close(above)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, reached)

    @property
    def fd(self) -> int:
        """The descriptor. This object closes it, not the caller."""
        if self._fd < 0:
            # The kernel would not refuse it: os.listdir takes -1 for the working directory.
            raise ClosedError(f"{self.path} was closed")
        return self._fd

    def child(self, name: str, *, create: bool = False) -> Directory:
        """Open the directory ``name`` in here; the same rules as :meth:`open`."""
        path = self._path(name)
        return Directory(_open_child(self.fd, name, _LIST, create, path), path)

    def names(self) -> list[str]:
        """All names in here, unordered, without "." and ".."."""
        return os.listdir(self.fd)

    def stat(self, name: str) -> os.stat_result:
        """What ``name`` itself is: a link is described, not followed."""
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def exists(self, name: str) -> bool:
        """True if anything at all has that name."""
        try:
            self.stat(name)
        except FileNotFoundError:
            return False
        return True

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of the file ``name``: without following links, not inherited, and without blocking."""
        try:
            return os.open(name, flags | _FILE, mode, dir_fd=self.fd)
        except OSError as error:
            self._place(error, name)
            raise

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Move ``name`` to ``to/new_name`` as it is: links stay links, FIFOs FIFOs, directories move whole.

        Atomic, and never over an existing name: ``FileExistsError``. Durable after ``to.sync()``.

        Where the kernel or the file system has no ``RENAME_NOREPLACE``, a file is linked to its new name and
        then unlinked, which is as safe; a crash between the two leaves both names, and repeating the call
        finishes the move. For an entry that cannot be linked, such as a directory, the new name is checked
        and then the entry renamed; that is safe only among processes that use the admission lock.
        """
        if not _rename_noreplace(self.fd, name, to.fd, new_name):
            self._rename_by_link(name, to, new_name)

    def _rename_by_link(self, name: str, to: Directory, new_name: str) -> None:
        try:
            os.link(name, new_name, src_dir_fd=self.fd, dst_dir_fd=to.fd, follow_symlinks=False)
        except FileExistsError:
            if not os.path.samestat(self.stat(name), to.stat(new_name)):
                raise
        except OSError as error:
            if error.errno not in _NO_SUCH_LINK:
                raise
            if to.exists(new_name):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name) from None
            self.replace(name, to, new_name)
            return
        self.unlink(name)

    def replace(self, name: str, to: Directory, new_name: str) -> None:
        """Move ``name`` to ``to/new_name``, over whatever has that name. Durable after ``to.sync()``."""
        try:
            os.rename(name, new_name, src_dir_fd=self.fd, dst_dir_fd=to.fd)
        except OSError as error:
            error.filename2 = to._path(new_name)
            self._place(error, name)
            raise

    def unlink(self, name: str) -> None:
        """Remove the file ``name``; ``FileNotFoundError`` if there is none."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError as error:
            self._place(error, name)
            raise

    def _path(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"

    def _place(self, error: OSError, name: str) -> None:
        """Make the error name the whole path instead of a name relative to this directory."""
        error.filename = self._path(name)

    def name_max(self) -> int:
        """The longest name, in bytes, that the file system takes here."""
        return os.fpathconf(self.fd, "PC_NAME_MAX")

    def sync(self) -> None:
        """Make every completed rename, creation and removal in here survive a power failure."""
        os.fsync(self.fd)

    def sync_file_system(self) -> bool:
        """Make whatever was written to the file system of this directory survive a power failure.

        One call costs less than syncing eight files one by one. False if this system has no such call.
        """
        if _syncfs is None:
            return False
        if _syncfs(self.fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), self.path)
        return True

    def close(self) -> None:
        """Close the descriptor; repeating it is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Directory({self.path!r}, fd={self._fd})"


_FILE = _NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def _open_child(fd: int, name: str, flags: int, create: bool, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise FileNotFoundError(errno.ENOENT, "no such directory; create it first", path) from None
        _make(fd, name, path)
        return _open_child(fd, name, flags, False, path)
    except OSError as error:
        # Linux says ENOTDIR for a link opened with O_DIRECTORY, others say ELOOP or EMLINK.
        if error.errno not in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
            raise OSError(error.errno, error.strerror, path) from None
        raise NotADirectoryError(errno.ENOTDIR, _explain(fd, name), path) from None


def _make(fd: int, name: str, path: str) -> None:
    try:
        os.mkdir(name, dir_fd=fd)
    except FileExistsError:
        return  # another process has just made it; the next open checks what it is
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    parent = os.open(".", _LIST, dir_fd=fd)  # an O_PATH descriptor cannot be synced itself
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _explain(fd: int, name: str) -> str:
    try:
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return "the component vanished while it was opened; try again"
    if not is_link:
        return "a component of the path is not a directory (remove it or choose another path)"
    target = os.readlink(name, dir_fd=fd)
    link = f"a component of the path is a symbolic link to {target!r} and is not followed"
    return f"{link}; give the real path instead of it"


def _rename_noreplace(source: int, name: str, target: int, new_name: str) -> bool:
    """False if this system has no such rename; nothing has happened then."""
    if _renameat2 is None:
        return False
    while _renameat2(source, os.fsencode(name), target, os.fsencode(new_name), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        if code in _NO_SUCH_RENAME:
            return False
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), name, None, new_name)
    return True
