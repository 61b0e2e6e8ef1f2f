"""Downloads from a server on this machine, which breaks off, lies and misbehaves on request."""

import hashlib
import io
import resource
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from generic_adam.errors import DataError
from generic_adam.experiments import downloads
from generic_adam.experiments.downloads import Member, RemoteFile, Source, fetch, fetch_source, unpack
from generic_adam.experiments.records import OutputError

CONTENT = bytes(range(256)) * 1000


class Server(ThreadingHTTPServer):
    """Serves `content`; remembers the Range header of each request."""

    daemon_threads = True
    content = CONTENT
    cut_after: int | None = None  # bytes of each answer before the connection is closed
    honours_ranges = True

    def __init__(self):
        self.ranges = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/files"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.ranges.append(wanted)
        if "missing" in self.path:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.honours_ranges else 0
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"
            )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if server.cut_after is None else body[: server.cut_after])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def source(content=CONTENT, name="data.bin", **changes):
    file = RemoteFile(name, len(content), hashlib.sha256(content).hexdigest())
    return Source("set", "http://127.0.0.1:9/", (file,), **changes)


def test_a_download_is_checked_and_reported(server, tmp_path):
    seen = []
    folder = fetch_source(source(), tmp_path, mirror=server.address, report=lambda *told: seen.append(told))
    assert (folder / "data.bin").read_bytes() == CONTENT
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert [path.name for path in folder.iterdir()] == ["data.bin"]


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    fetch_source(source(), tmp_path, mirror=server.address)
    fetch_source(source(), tmp_path, mirror=server.address)
    assert len(server.ranges) == 1


def test_a_broken_connection_goes_on_where_it_broke(server, tmp_path):
    server.cut_after = 100_000
    folder = fetch_source(source(), tmp_path, mirror=server.address)
    assert (folder / "data.bin").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_a_part_left_by_an_earlier_command_is_used(server, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin.part").write_bytes(CONTENT[:12345])
    folder = fetch_source(source(), tmp_path, mirror=server.address)
    assert server.ranges == ["bytes=12345-"]
    assert (folder / "data.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_is_read_from_the_start(server, tmp_path):
    server.honours_ranges = False
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin.part").write_bytes(b"x" * 999)
    folder = fetch_source(source(), tmp_path, mirror=server.address)
    assert (folder / "data.bin").read_bytes() == CONTENT


def test_wrong_content_is_thrown_away(server, tmp_path):
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(DataError, match="SHA-256 is not"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert list((tmp_path / "set").iterdir()) == []


def test_a_file_that_does_not_end_is_stopped(server, tmp_path):
    server.content = CONTENT + b"more"
    with pytest.raises(DataError, match="more than the expected 256,000 bytes"):
        fetch_source(source(), tmp_path, mirror=server.address)


def test_a_dead_server_keeps_what_came(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "ATTEMPTS", 2)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin.part").write_bytes(CONTENT[:500])
    server.cut_after = 0
    with pytest.raises(DataError, match="500 of 256,000 bytes are kept"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert (tmp_path / "set" / "data.bin.part").read_bytes() == CONTENT[:500]


def test_a_missing_file_is_one_line(server, tmp_path):
    with pytest.raises(DataError, match=r"missing\.bin: 404 Not Found"):
        fetch_source(source(name="missing.bin"), tmp_path, mirror=server.address)


@pytest.mark.parametrize("address", ["file:///etc", "ftp://example.org", "/etc", "http://[", "http://"])
def test_only_the_web_is_fetched_from(tmp_path, address):
    with pytest.raises(DataError, match="begins with http"):
        fetch_source(source(), tmp_path, mirror=address)


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(DataError, match="expected one of cifar100, mnist"):
        fetch("imagenet", tmp_path)


def archive(entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content, link in entries:
            info = tarfile.TarInfo(name)
            if link:
                info.type, info.linkname = tarfile.SYMTYPE, link
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


MEMBERS = (Member("set/train.bin", 3), Member("set/test.bin", 2))


def test_an_archive_gives_its_expected_members_only(server, tmp_path):
    server.content = archive(
        [(name, b"no", None) for name in ("../../evil", "/tmp/evil", "set/extra")]
        + [("set/train.bin", b"abc", None), ("set/test.bin", b"de", None)]
    )
    packed = source(server.content, name="set.tar.gz", members=MEMBERS)
    folder = fetch_source(packed, tmp_path / "data", mirror=server.address)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "train.bin": b"abc",
        "test.bin": b"de",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    fetch_source(packed, tmp_path / "data", mirror=server.address)
    assert len(server.ranges) == 1, "unpacked data is not fetched again"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("set/train.bin", b"abc", None)], "no set/test.bin inside"),
        (
            [("set/train.bin", b"", "/etc/passwd"), ("set/test.bin", b"de", None)],
            "train.bin is not a file of 3",
        ),
        ([("set/train.bin", b"abcd", None), ("set/test.bin", b"de", None)], "train.bin is not a file of 3"),
    ],
)
def test_a_strange_archive_is_refused(tmp_path, entries, message):
    path = tmp_path / "set.tar.gz"
    path.write_bytes(archive(entries))
    with pytest.raises(DataError, match=message):
        unpack(path, MEMBERS, tmp_path)


def test_a_damaged_archive_is_named(tmp_path):
    path = tmp_path / "set.tar.gz"
    path.write_bytes(archive([("set/train.bin", b"abc", None)])[:40])
    with pytest.raises(DataError, match=r"set\.tar\.gz: damaged archive"):
        unpack(path, MEMBERS, tmp_path)


def test_a_full_disk_is_told_apart_from_a_bad_connection(server, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OutputError, match=r"cannot write .*data\.bin\.part: File too large"):
            fetch_source(source(), tmp_path, mirror=server.address)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(server.ranges) == 1
