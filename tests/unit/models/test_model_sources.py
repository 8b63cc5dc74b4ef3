from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import sys
import threading

import pytest

from advsets.errors import UserError
from advsets.models.sources import fetch_model

FILES = {
    "config.json": b'{"model_type": "bert"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"x" * 1000,
    "pytorch_model.bin": b"y",
    "onnx/model.onnx": b"z",
}


class Hub(http.server.BaseHTTPRequestHandler):
    """The few answers of the hub that a download needs; `server.commit` is the head of `main`."""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, commit = self.path.split("?")[0], self.server.commit
        self.server.asked.append(path)
        if path.startswith("/api/models/made/up"):
            asked = path.split("/")[-1]
            files = [
                {"type": "file", "path": n, "size": len(b), "oid": hashlib.sha1(b).hexdigest()}
                for n, b in FILES.items()
            ]
            info = {
                "id": "made/up",
                "sha": commit if asked == "main" else asked,
                "siblings": [{"rfilename": n} for n in FILES],
            }
            self._answer(json.dumps(files if "/tree/" in path else info).encode(), asked)
        elif "/resolve/" in path and path.split("/")[-1] in FILES:
            self._answer(FILES[path.split("/")[-1]], path.split("/")[4])
        else:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()

    def _answer(self, body, commit):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.commit, server.asked = "a" * 40, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    server.server_close()


def _hub_row(kit, repo="made/up", **more):
    return kit.model_row(source={"kind": "hub", "repo": repo, "revision": "main"}, **more)


def test_hub_models_are_fetched_once_and_stay_at_their_commit(kit, hub, tmp_path):
    fetch_model(_hub_row(kit), tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    assert record["revision"] == "a" * 40
    assert sorted(p.name for p in (tmp_path / "snapshot").iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    hub.asked.clear()
    fetch_model(_hub_row(kit), tmp_path)
    assert hub.asked == []
    hub.commit = "b" * 40  # the branch moves on; the recorded commit is fetched again
    (tmp_path / "snapshot" / "model.safetensors").unlink()
    fetch_model(_hub_row(kit), tmp_path)
    assert json.loads((tmp_path / "model.json").read_text()) == record


def test_a_random_start_needs_no_weights_from_the_hub(kit, hub, tmp_path):
    fetch_model(_hub_row(kit, random_init=True), tmp_path)
    assert sorted(p.name for p in (tmp_path / "snapshot").iterdir()) == ["config.json", "tokenizer.json"]


def test_an_unknown_hub_id_is_told(kit, hub, tmp_path):
    with pytest.raises(UserError, match="hub model 'no/such', revision 'main': the hub has no such model"):
        fetch_model(_hub_row(kit, "no/such"), tmp_path)
    assert not (tmp_path / "model.json").exists()


def test_an_unreachable_hub_names_what_to_fetch_and_where_to_put_it(kit, tmp_path, monkeypatch, miniature):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError) as error:
        fetch_model(_hub_row(kit), tmp_path)
    message = str(error.value)
    assert "`hf download made/up --revision main --local-dir DIR`" in message
    assert message.endswith(f"copy DIR to {tmp_path / 'snapshot'}")
    assert "\n" not in message
    shutil.copytree(miniature("bert"), tmp_path / "snapshot")  # what the message asks for
    fetch_model(_hub_row(kit), tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    assert (record["path"], record["revision"]) == (str(tmp_path / "snapshot"), None)


def test_a_local_folder_is_used_where_it_lies(kit, miniature, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIATURES", str(miniature("bert").parent))
    row = kit.model_row(source={"kind": "path", "path": "$MINIATURES/model"})
    fetch_model(row, tmp_path)
    before = (tmp_path / "model.json").stat().st_mtime_ns
    record = json.loads((tmp_path / "model.json").read_text())
    assert record["path"] == str(miniature("bert"))
    assert set(record["files"]) == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    fetch_model(row, tmp_path)
    assert (tmp_path / "model.json").stat().st_mtime_ns == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (["config.json"], "no config.json; allowed: a folder in the hub's format"),
        (["tokenizer.json"], "no tokenizer; allowed: tokenizer.json or a vocabulary"),
        (["model.safetensors"], "no weights; allowed: model.safetensors or pytorch_model.bin"),
    ],
)
def test_incomplete_folders_are_told(kit, miniature, tmp_path, gone, message):
    folder = shutil.copytree(miniature("bert"), tmp_path / "m")
    for name in gone:
        (folder / name).unlink()
    with pytest.raises(UserError, match=message):
        fetch_model(kit.model_row(source={"kind": "path", "path": str(folder)}), tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": "path", "path": "/no/such/folder"}, "/no/such/folder is no folder; put the model there"),
        (
            {"kind": "package", "package": "no_such_package", "folder": "m"},
            "not installed; run `pip install no-such-package`",
        ),
        (
            {"kind": "package", "package": "advsets", "folder": "no_such"},
            "is no folder; correct it or reinstall advsets",
        ),
    ],
)
def test_missing_folders_and_packages_are_told(kit, tmp_path, source, message):
    with pytest.raises(UserError, match=message):
        fetch_model(kit.model_row(source=source), tmp_path)


def test_a_package_is_found_without_importing_it(kit, tmp_path, monkeypatch, miniature):
    package = tmp_path / "carries_weights"
    shutil.copytree(miniature("bert"), package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    row = kit.model_row(source={"kind": "package", "package": "carries_weights", "folder": "model"})
    fetch_model(row, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "model.json").read_text())["path"] == str(package / "model")
    assert "carries_weights" not in sys.modules
