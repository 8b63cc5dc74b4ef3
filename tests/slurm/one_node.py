"""A SLURM of one node on this machine, for tests: Debian's packages, invented processors, memory and GPUs.

    python tests/slurm/one_node.py up | down | status

Root only; without systemd. Nothing enforces what jobs ask for, but the scheduler counts it, and every
GPU is given to one job at a time by CUDA_VISIBLE_DEVICES. The files lie in HOME below; clients look
for the configuration in /etc/slurm, so links stand there while the cluster is up.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

HOME = Path("/var/tmp/advsets-slurm")
SYSTEM = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
N_CPUS, N_GPUS, MEMORY_MB = 16, 4, 512_000

SLURM_CONF = """\
ClusterName=advsets
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/log/slurmctld.log
SlurmdLogFile={home}/log/slurmd.log
# No accounting, no cgroups: as little as a container has.
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
# Several jobs share the node, by processors and memory. Jobs that name no memory get little, or one would get all.
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
MinJobAge=1200
KillWait=2
ReturnToService=2
# Take the numbers below for true.
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 Gres=gpu:{gpus} RealMemory={memory} CPUs={cpus} {shape}
PartitionName=batch Nodes={host} Default=YES MaxTime=7-00:00:00 State=UP
PartitionName=gpu Nodes={host} MaxTime=7-00:00:00 State=UP
"""
GRES_CONF = """\
AutoDetect=off
NodeName={host} Name=gpu Flags=nvidia_gpu_env File={home}/devices/nvidia[0-{last}]
"""


class Unavailable(RuntimeError):
    """A SLURM cannot be had here; says why."""


def up() -> None:
    """Install what is missing and start munge, the controller and the node's daemon."""
    _check_machine()
    _install()
    if status() is not None:
        return
    down()
    _write_files()
    key = HOME / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    names = {"--key-file": "key", "--socket": "socket", "--pid-file": "pid", "--seed-file": "seed"}
    options = [f"{option}={HOME}/munge.{suffix}" for option, suffix in names.items()]
    _run("munged", *options, f"--log-file={HOME}/log/munged.log")
    _run("slurmctld", "-c")
    _run("slurmd")
    deadline = time.monotonic() + 30
    while status() != "idle":
        if time.monotonic() > deadline:
            raise Unavailable(f"the node did not come up; see {HOME}/log")
        time.sleep(0.1)


def down() -> None:
    """Cancel all jobs, end the daemons that this script started and remove the links."""
    if status() is not None:
        subprocess.run(["scancel", "--user=root", "--signal=KILL", "--full"], check=False, capture_output=True)
        subprocess.run(["scancel", "--user=root"], check=False, capture_output=True)
    for name in ("slurmd", "slurmctld", "munge"):
        _end(HOME / f"{name}.pid")
    for name in FILES:
        if (SYSTEM / name).is_symlink() and (SYSTEM / name).readlink() == HOME / name:
            (SYSTEM / name).unlink()
    shutil.rmtree(HOME, ignore_errors=True)


def status() -> str | None:
    """State of the node as `sinfo` calls it, or None where this cluster is not up."""
    if shutil.which("sinfo") is None or not (HOME / "slurm.conf").is_file():
        return None
    found = subprocess.run(["sinfo", "-h", "-p", "batch", "-o", "%t"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise Unavailable("a SLURM of our own needs root")
    for path in (SYSTEM / name for name in FILES):
        if path.exists() and not path.is_symlink():
            raise Unavailable(f"{path} is a real cluster's; not touched")
    if any(Path("/dev").glob("nvidia[0-9]*")):
        raise Unavailable("this machine has GPUs, which invented ones would be taken for")


def _install() -> None:
    if shutil.which("slurmctld") and shutil.which("slurmd") and shutil.which("munged"):
        return
    if shutil.which("apt-get") is None:
        raise Unavailable("no slurmctld, slurmd and munged here, and no apt-get to install them")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "slurm-wlm", "munge"]):
        done = subprocess.run(["apt-get", "-qq", *arguments], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(f"apt-get {arguments[0]} failed: {reason}")


def _write_files() -> None:
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "log", "devices"):
        (HOME / name).mkdir(parents=True, exist_ok=True)
    HOME.chmod(0o755)
    for number in range(N_GPUS):
        # A device is taken for a GPU only if it is a character device: this is /dev/null again.
        os.mknod(HOME / "devices" / f"nvidia{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    values = {"host": host, "home": HOME, "cpus": N_CPUS, "gpus": N_GPUS, "memory": MEMORY_MB, "last": N_GPUS - 1}
    values["shape"] = f"Boards=1 SocketsPerBoard=1 CoresPerSocket={N_CPUS} ThreadsPerCore=1"
    contents = (SLURM_CONF.format(**values), GRES_CONF.format(**values), "CgroupAutomount=no\n")
    SYSTEM.mkdir(exist_ok=True)
    for name, content in zip(FILES, contents, strict=True):
        (HOME / name).write_text(content)
        (SYSTEM / name).unlink(missing_ok=True)
        (SYSTEM / name).symlink_to(HOME / name)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{command[0]} did not start: {(done.stderr or done.stdout).strip()}")


def _end(pid_file: Path) -> None:
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, 15)
    except (OSError, ValueError):
        return
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def main() -> None:
    actions = {"up": up, "down": down, "status": lambda: None}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit("usage: python tests/slurm/one_node.py up | down | status")
    try:
        actions[sys.argv[1]]()
    except Unavailable as error:
        sys.exit(str(error))
    print(f"SLURM: {status() or 'down'}")


if __name__ == "__main__":
    main()
