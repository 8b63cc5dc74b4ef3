"""One device, one job: also with more jobs than devices, and when jobs are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from advsets.devices import device_for, list_devices
from advsets.errors import UserError

# Takes devices `rounds` times; a victim stays in its second turn until it is killed.
JOB = """
    import os, random, resource, signal, sys, time
    from pathlib import Path
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a test run under nohup hands down that it is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from advsets import devices
    devices._POLL_S = 0.005
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder, n_gpus, rounds, victim = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "victim"
    n_devices = int(sys.argv[5])
    events = os.open(folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    def tell(what, held):
        os.write(events, f"{what} {os.getpid()} {held}\\n".encode())
    for turn in range(rounds):
        with devices.device_for(n_gpus, folder / "locks", [str(i) for i in range(n_devices)]) as device:
            held = os.environ["CUDA_VISIBLE_DEVICES"]
            assert device == "cuda"
            tell("open", held)
            time.sleep(60 if victim and turn == 1 else random.uniform(0.005, 0.02))
            tell("close", held)
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
"""


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


class Machine:
    """A machine with some devices, the jobs on it, and what they told, in one order."""

    def __init__(self, folder: Path, n_devices: int = 4) -> None:
        self.folder, self.n_devices = folder, n_devices
        self.file = os.open(folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def start(self, n_gpus: int, rounds: int, victim: bool = False) -> subprocess.Popen[bytes]:
        arguments = [str(self.folder), str(n_gpus), str(rounds), "victim" if victim else "survivor"]
        command = [sys.executable, "-c", textwrap.dedent(JOB), *arguments, str(self.n_devices)]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL if victim or rounds > 1000 else None)

    def events(self) -> list[tuple[str, int, list[str]]]:
        lines = [line.split(" ") for line in (self.folder / "events").read_text().splitlines()]
        return [(what, int(pid), held.split(",") if held else []) for what, pid, held in lines]

    def turns(self, process: subprocess.Popen[bytes]) -> int:
        return sum(1 for what, pid, _ in self.events() if (what, pid) == ("open", process.pid))

    def kill(self, process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGKILL) -> None:
        process.send_signal(signal.SIGSTOP)  # so that it tells nothing between the next line and its death
        os.waitpid(process.pid, os.WUNTRACED)
        os.write(self.file, f"kill {process.pid} \n".encode())
        process.send_signal(by)
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == -by


def check_one_job_per_device(events: list[tuple[str, int, list[str]]]) -> None:
    holder: dict[str, int] = {}
    for what, pid, held in events:
        if what == "open":
            for device in held:
                assert device not in holder, f"device {device}: {pid} beside {holder[device]}"
                holder[device] = pid
        else:  # "close", or "kill", which is told just before the signal
            holder = {device: owner for device, owner in holder.items() if owner != pid}
    assert holder == {}


def test_twelve_jobs_on_four_devices_some_killed(tmp_path: Path) -> None:
    machine, chance = Machine(tmp_path), random.Random(0)
    survivors = [machine.start(n_gpus=2 if i < 2 else 1, rounds=6) for i in range(6)]
    victims = [machine.start(n_gpus=1 + i // 3, rounds=2, victim=True) for i in range(4)]
    unlucky = [machine.start(n_gpus=1, rounds=100_000) for _ in range(2)]
    signals = iter(
        [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGHUP, signal.SIGABRT]
    )  # one each
    deadline = time.monotonic() + 120
    waiting = list(victims)
    while waiting:
        assert time.monotonic() < deadline, machine.events()
        for victim in [v for v in waiting if machine.turns(v) == 2]:
            machine.kill(victim, next(signals))  # while it holds devices
            waiting.remove(victim)
        time.sleep(0.005)
    for process in unlucky:
        time.sleep(chance.uniform(0, 0.05))
        machine.kill(process, next(signals))  # holding one, waiting for one, or first in the queue
    assert [process.wait(120) for process in survivors] == [0] * 6
    events = machine.events()
    check_one_job_per_device(events)
    assert all(machine.turns(process) == 6 for process in survivors)
    assert {device for _, _, held in events for device in held} == {"0", "1", "2", "3"}
    for process in survivors[:2]:
        assert all(len(set(held)) == 2 for _, pid, held in events if pid == process.pid)
    for victim in victims:
        assert [what for what, pid, _ in events if pid == victim.pid] == ["open", "close", "open", "kill"]


def test_a_job_that_asks_for_two_is_not_passed_for_ever(tmp_path: Path) -> None:
    machine = Machine(tmp_path, n_devices=2)
    stream = [machine.start(n_gpus=1, rounds=100_000) for _ in range(3)]
    wide = [machine.start(n_gpus=2, rounds=4) for _ in range(2)]
    try:
        assert [process.wait(60) for process in wide] == [0, 0]
    finally:
        for process in stream:
            machine.kill(process)
    check_one_job_per_device(machine.events())
    assert all(machine.turns(process) == 4 for process in wide)


def test_the_first_in_the_queue_keeps_what_it_has_and_dies_without_harm(tmp_path: Path) -> None:
    machine = Machine(tmp_path, n_devices=2)
    holder = machine.start(n_gpus=1, rounds=2, victim=True)
    while machine.turns(holder) < 2:
        time.sleep(0.005)
    wide = machine.start(n_gpus=2, rounds=1)
    while not (tmp_path / "locks" / "1").exists():  # it has taken the free device and waits for the other
        time.sleep(0.005)
    late = machine.start(n_gpus=1, rounds=1)
    time.sleep(0.3)
    assert machine.turns(wide) == machine.turns(late) == 0
    machine.kill(wide, signal.SIGTERM)
    assert late.wait(20) == 0
    machine.kill(holder)
    check_one_job_per_device(machine.events())


def test_the_check_sees_two_jobs_on_one_device() -> None:
    with pytest.raises(AssertionError, match="device 1: 12 beside 11"):
        check_one_job_per_device([("open", 11, ["0", "1"]), ("open", 12, ["1"])])
    check_one_job_per_device([("open", 11, ["0"]), ("kill", 11, []), ("open", 12, ["0"]), ("close", 12, ["0"])])


def test_first_free_device_is_taken_and_given_back(tmp_path: Path) -> None:
    with device_for(1, tmp_path, ["0", "1"]) as first:
        assert (first, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", "0")
    with pytest.raises(ZeroDivisionError), device_for(1, tmp_path, ["0", "1"]):
        _ = 1 / 0
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with device_for(2, tmp_path, ["0", "1"]):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_more_devices_than_there_are_gives_all(tmp_path: Path) -> None:
    with device_for(8, tmp_path, ["0", "1"]):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(("n_gpus", "devices"), [(0, ["0"]), (1, []), (0, [])])
def test_cpu_without_gpus(tmp_path: Path, n_gpus: int, devices: list[str]) -> None:
    with device_for(n_gpus, tmp_path, devices) as device:
        assert device == "cpu"
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("n_gpus", "value"), [(1, "3"), (2, "0,1"), (4, "0,1"), (1, "GPU-8932f937-d72c"), (1, "MIG-GPU-1/2/3")]
)
def test_choice_of_a_scheduler_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_gpus: int, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    with device_for(n_gpus, tmp_path, ["0", "1"]) as device:
        assert (device, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", value)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == value
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["4,7", "GPU-8932f937,GPU-1b9d7a3c", "MIG-GPU-1/2/3,MIG-GPU-1/3/3"])
def test_jobs_share_out_the_devices_that_they_see_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    first, second = given.split(",")
    with device_for(1, tmp_path, ["0", "1"]) as device:
        assert (device, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", first)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        with device_for(1, tmp_path, ["0", "1"]):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == second
        assert os.environ["CUDA_VISIBLE_DEVICES"] == given
    assert os.environ["CUDA_VISIBLE_DEVICES"] == given


def test_locks_of_one_slurm_job_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with device_for(1, devices=["0"]):
        pass
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    with device_for(1, devices=["0"]):  # SLURM told no devices: those of the machine, shared with all
        pass
    assert [path.name for path in tmp_path.iterdir()] == [f"advsets-devices-{os.getuid()}"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with device_for(1, devices=["0", "1"]):
        pass
    assert (tmp_path / f"advsets-devices-{os.getuid()}-slurm-17" / "0").exists()


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_scheduler_that_hides_all_devices_gives_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    with device_for(1, tmp_path, ["0", "1"]) as device:
        assert device == "cpu"


def test_devices_are_counted_as_cuda_counts_them(tmp_path: Path) -> None:
    assert list_devices(tmp_path) == []
    for name in ("nvidia3", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia0x", "null"):
        (tmp_path / name).touch()
    assert list_devices(tmp_path) == ["0", "1"]


def test_wanted_gpu_that_is_not_there_is_one_line() -> None:
    with pytest.raises(UserError, match="found no CUDA device"), device_for(1, devices=[], wanted="cuda"):
        pass
