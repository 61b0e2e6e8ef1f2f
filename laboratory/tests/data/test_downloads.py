"""Downloads from a server on this machine, which breaks off, lies and misbehaves on request."""

import gc
import hashlib
import io
import itertools
import os
import resource
import ssl
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from generic_adam.errors import DataError
from generic_adam.files import OutputError
from generic_adam_laboratory.data import downloads
from generic_adam_laboratory.data.downloads import RemoteFile, Source, fetch, fetch_source, unpack

CONTENT = bytes(range(256)) * 1000


class Server(ThreadingHTTPServer):
    """Serves `content`; remembers the Range header of each request."""

    daemon_threads = True
    content = CONTENT
    cut_after: int | None = None  # bytes of each answer before the connection is closed
    honours_ranges = True
    script = None  # a function of the handler that answers instead

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
        if server.script is not None:
            server.script(self)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.honours_ranges else 0
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
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
    assert sorted(path.name for path in folder.iterdir()) == ["data.bin"]


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
    with pytest.raises(DataError, match="more than"):
        fetch_source(source(), tmp_path, mirror=server.address)


def test_a_dead_server_keeps_what_came(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "ATTEMPTS", 2)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin.part").write_bytes(CONTENT[:500])
    server.cut_after = 0
    with pytest.raises(DataError, match="500 of"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert (tmp_path / "set" / "data.bin.part").read_bytes() == CONTENT[:500]


def test_a_missing_file_is_one_line(server, tmp_path):
    with pytest.raises(DataError, match="404"):
        fetch_source(source(name="missing.bin"), tmp_path, mirror=server.address)


@pytest.mark.parametrize("address", ["file:///etc", "ftp://example.org", "/etc", "http://[", "http://"])
def test_only_the_web_is_fetched_from(tmp_path, address):
    with pytest.raises(DataError, match="begins with http"):
        fetch_source(source(), tmp_path, mirror=address)


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(DataError, match="cifar100"):
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


MEMBERS = {"set/train.bin": 3, "set/test.bin": 2}


def test_an_archive_gives_its_expected_members_only(server, tmp_path):
    server.content = archive(
        [(name, b"no", None) for name in ("../../evil", "/tmp/evil", "set/extra")]
        + [("set/train.bin", b"abc", None), ("set/test.bin", b"de", None)]
    )
    packed = source(server.content, name="set.tar.gz", members=MEMBERS)
    folder = fetch_source(packed, tmp_path / "data", mirror=server.address)
    assert sorted(path.name for path in folder.iterdir()) == ["test.bin", "train.bin"]
    assert (folder / "train.bin").read_bytes() == b"abc"
    assert (folder / "test.bin").read_bytes() == b"de"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    fetch_source(packed, tmp_path / "data", mirror=server.address)
    assert len(server.ranges) == 1, "unpacked data is not fetched again"
    (folder / "train.bin").write_bytes(b"ab")
    fetch_source(packed, tmp_path / "data", mirror=server.address)
    assert len(server.ranges) == 2, "what is cut off is fetched again"
    assert (folder / "train.bin").read_bytes() == b"abc"


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
    with pytest.raises(DataError, match="damaged"):
        unpack(path, MEMBERS, tmp_path)


def test_a_full_disk_is_told_apart_from_a_bad_connection(server, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OutputError, match="too large"):
            fetch_source(source(), tmp_path, mirror=server.address)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(server.ranges) == 1


def part_of(tmp_path):
    (tmp_path / "set").mkdir()
    return tmp_path / "set" / "data.bin.part"


@pytest.mark.parametrize("left", [b"x" * 999, b"x" * (len(CONTENT) + 5), b"x" * len(CONTENT)])
def test_a_bad_part_does_not_cost_a_good_download(server, tmp_path, left):
    part_of(tmp_path).write_bytes(left)
    folder = fetch_source(source(), tmp_path, mirror=server.address)
    assert (folder / "data.bin").read_bytes() == CONTENT


def test_a_part_that_is_a_link_is_refused(server, tmp_path):
    target = tmp_path / "precious"
    target.write_text("do not touch")
    part_of(tmp_path).symlink_to(target)
    with pytest.raises(OutputError, match="is a link"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert target.read_text() == "do not touch"


@pytest.mark.timeout(60)
def test_a_part_that_is_a_pipe_is_refused(server, tmp_path):
    os.mkfifo(part_of(tmp_path))
    with pytest.raises(OutputError, match="no file"):  # to open it would wait for a reader
        fetch_source(source(), tmp_path, mirror=server.address)


def test_a_server_that_sends_a_byte_and_hangs_up_is_given_up(server, tmp_path):
    server.cut_after = 1
    with pytest.raises(DataError, match="5 of"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert len(server.ranges) == downloads.ATTEMPTS


def test_a_server_that_goes_to_and_fro_is_given_up(server, tmp_path):
    """Without ranges, a longer and a shorter piece in turn: nothing is won, as often as one asks."""
    server.honours_ranges = False
    lengths = itertools.cycle([150_000, 70_000])

    def script(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 256000\r\n\r\n" + CONTENT[: next(lengths)])
        handler.close_connection = True

    server.script = script
    with pytest.raises(DataError, match="are kept"):
        fetch_source(source(), tmp_path, mirror=server.address)
    assert len(server.ranges) <= 1 + downloads.ATTEMPTS


def raw(answer: bytes):
    def script(handler):
        handler.wfile.write(answer)
        handler.close_connection = True

    return script


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        CHUNKED + b"-5\r\nhello\r\n",
        CHUNKED + b"zz\r\nhello\r\n",
        b"\x00\xff\xfe garbage",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        b"HTTP/1.1 500 \x1b[31mred\x07\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n",
        b"",
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_hostile_answer_is_one_clean_line(server, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(downloads, "ATTEMPTS", 2)
    server.script = raw(answer)
    with pytest.raises(DataError) as caught:
        fetch_source(source(), tmp_path, mirror=server.address)
    assert str(caught.value).isprintable()
    del caught
    gc.collect()  # urllib leaves the socket of a redirect to no address to the collector


@pytest.mark.parametrize(
    "mirror", ["http://127.0.0.1:1/\u00e4\u4e2d", "http://\u00e4\udcff/", "http://a b/", "http://x:99999/"]
)
def test_an_odd_address_is_one_line(tmp_path, monkeypatch, mirror):
    monkeypatch.setattr(downloads, "ATTEMPTS", 1)
    with pytest.raises(DataError) as caught:
        fetch_source(source(), tmp_path, mirror=mirror)
    assert str(caught.value).isprintable()


def test_what_breaks_inside_tls_is_a_bad_connection(tmp_path, monkeypatch):
    class Broken(io.BytesIO):
        status, headers = 200, {}

        def read1(self, _size):
            raise ssl.SSLError(1, "bad record mac")

    monkeypatch.setattr(downloads, "ATTEMPTS", 1)
    monkeypatch.setattr(downloads, "urlopen", lambda *_a, **_k: Broken())
    with pytest.raises(DataError, match="bad record mac"):
        fetch_source(source(), tmp_path, mirror="https://example.org")
