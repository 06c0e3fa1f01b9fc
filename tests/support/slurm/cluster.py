"""A real Slurm cluster on this machine for tests: several nodes with fake GPUs, removed after the test.

    python tests/support/slurm/cluster.py [--accounting]        start one, print how to use it, stop it at Ctrl-C

It needs root and the Debian packages of `packages()`, which `install` fetches with apt. Everything is kept in one temporary
folder except the link /etc/slurm/slurm.conf: the jobs' inner srun does not see the variable SLURM_CONF, because Snakemake's
plugin removes it. There is no isolation by cgroups: a job could use memory and devices that it was not assigned.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CONFIGURATION = Path("/etc/slurm/slurm.conf")
PREFIX = "slurm-test-"  # of the names of clusters' folders
POLICY = Path("/usr/sbin/policy-rc.d")
NODES = ("node1", "node2", "node3")
CPUS, MEMORY_MB, GPUS = 2, 20000, 2  # per node, whatever this machine has


class UnavailableError(RuntimeError):
    """No Slurm is available here; the message says why."""


def packages(accounting: bool) -> list[str]:
    """The Debian packages that a cluster needs."""
    return ["munge", "slurmctld", "slurmd", "slurm-client", *(["slurmdbd", "mariadb-server"] if accounting else [])]


def _installed(package: str) -> bool:
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    return asked.stdout == "install ok installed"


def install(accounting: bool) -> None:
    """Install missing packages without starting their services.

    Raises:
        UnavailableError: this is not Debian, or the user is not root, or the packages are unavailable.
    """
    if os.getuid() != 0:
        raise UnavailableError("starting Slurm needs root")
    if shutil.which("apt-get") is None:
        raise UnavailableError("Slurm is installed with apt-get, which is not here")
    missing = [package for package in packages(accounting) if not _installed(package)]
    if not missing:
        return
    silence = not POLICY.exists()
    if silence:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *missing]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if done.returncode:
                raise UnavailableError(f"{' '.join(command)} failed: {done.stderr.strip().splitlines()[-1:]}")
    finally:
        if silence:
            POLICY.unlink()


def _ports(number: int) -> list[int]:
    """Free TCP ports."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _answers(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0


class Cluster:
    """A running cluster. Its partitions are main, the default, and urgent, whose jobs preempt those of main."""

    def __init__(self, folder: Path, accounting: bool) -> None:
        self.configured_before = os.environ.get("SLURM_CONF")
        self.folder, self.accounting = folder, accounting
        self.host = socket.gethostname().split(".")[0]
        self.controller_port, self.database_port, self.mariadb_port, *self.node_ports = _ports(3 + len(NODES))
        self.daemons: list[subprocess.Popen] = []

    def _start(self, *command: str, ready: Callable[[], bool]) -> None:
        """Start a daemon in the foreground of its own session and wait until it is ready."""
        name = Path(command[0]).name
        with (self.folder / f"{name}.out").open("ab") as output:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=self.folder
            )
        self.daemons.append(daemon)
        deadline = time.monotonic() + 60
        while not ready():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start:\n{(self.folder / f'{name}.out').read_text()[-2000:]}")
            time.sleep(0.1)

    def _configure(self) -> None:
        folder, host = self.folder, self.host
        nodes, devices = [], []
        for index, (name, port) in enumerate(zip(NODES, self.node_ports, strict=True)):
            (folder / "spool" / name).mkdir(parents=True)
            nodes.append(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
                f"CPUs={CPUS} RealMemory={MEMORY_MB} Gres=gpu:{GPUS}"
            )
            for number in range(GPUS):
                # Slurm accepts only device files as GPUs, so these are copies of /dev/null.
                path = folder / f"gpu{index}_{number}"
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
                devices.append(f"NodeName={name} Name=gpu File={path}")
        accounting = ["AccountingStorageType=accounting_storage/none"]
        if self.accounting:
            accounting = [
                "AccountingStorageType=accounting_storage/slurmdbd",
                "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={self.database_port}",
                f"AccountingStoragePass={folder}/munge.socket",
                "AccountingStorageEnforce=associations",
            ]
        settings = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self.controller_port}",
            "SlurmUser=root",
            "SlurmdUser=root",
            # A requeued job waits until its old credential has expired.
            f"AuthInfo=socket={folder}/munge.socket,cred_expire=15",
            f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/slurmd.%n.pid",
            f"SlurmctldLogFile={folder}/slurmctld.log",
            f"SlurmdLogFile={folder}/slurmd.%n.log",
            # No systemd and no cgroups, because containers lack them.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/linux",
            "MpiDefault=none",
            # Nodes with more processors and memory than this machine.
            "SlurmdParameters=config_overrides",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU_Memory",
            "GresTypes=gpu",
            "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE",
            # Short intervals make scheduling fast.
            "SchedulerParameters=sched_interval=2,bf_interval=2,requeue_delay=1",
            "KillWait=2",
            "ReturnToService=2",
            *accounting,
            *nodes,
            f"PartitionName=main Nodes={','.join(NODES)} Default=YES MaxTime=60 PriorityTier=1",
            f"PartitionName=urgent Nodes={','.join(NODES)} MaxTime=60 PriorityTier=2 PreemptMode=OFF",
        ]
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text("\n".join(settings) + "\n")
        (folder / "gres.conf").write_text("\n".join(devices) + "\n")

    def _start_database(self) -> None:
        folder, data, connection = self.folder, self.folder / "mariadb", self.folder / "mariadb.socket"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db"],
            check=True,
            capture_output=True,
        )
        client = ["--no-defaults", "--user=root", f"--socket={connection}"]
        self._start(
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={connection}"),
            *("--bind-address=127.0.0.1", f"--port={self.mariadb_port}", f"--pid-file={folder}/mariadb.pid"),
            *("--innodb-lock-wait-timeout=900",),
            ready=lambda: _answers("mariadb-admin", *client, "ping"),
        )
        for statement in (
            "CREATE DATABASE slurm_acct_db",
            "CREATE USER slurm@'%' IDENTIFIED BY 'slurm'",
            "GRANT ALL ON slurm_acct_db.* TO slurm@'%'",
        ):
            subprocess.run(["mariadb", *client, "--execute", statement], check=True)
        configuration = folder / "slurmdbd.conf"
        lines = [
            f"AuthInfo=socket={folder}/munge.socket",
            "DbdHost=localhost",
            f"DbdPort={self.database_port}",
            "SlurmUser=root",
            f"PidFile={folder}/slurmdbd.pid",
            f"LogFile={folder}/slurmdbd.log",
            "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1",
            f"StoragePort={self.mariadb_port}",
            "StorageUser=slurm",
            "StoragePass=slurm",
        ]
        configuration.write_text("\n".join(lines) + "\n")
        configuration.chmod(0o600)
        self._start("slurmdbd", "-D", ready=lambda: _answers("sacctmgr", "--noheader", "list", "cluster"))
        for words in ("cluster test", "account study", "user root account=study"):
            subprocess.run(["sacctmgr", "--immediate", "add", *words.split()], check=True, capture_output=True)

    def start(self) -> None:
        """Start everything and wait until all nodes take jobs.

        Raises:
            UnavailableError: this machine may not make device files.
        """
        try:
            self._configure()
        except PermissionError as error:
            raise UnavailableError(f"fake GPUs cannot be made here: {error}") from error
        CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
        CONFIGURATION.unlink(missing_ok=True)
        CONFIGURATION.symlink_to(self.folder / "slurm.conf")
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        connection = self.folder / "munge.socket"
        self._start(
            *("munged", "--foreground", "--force", f"--socket={connection}", f"--key-file={key}"),
            *(f"--pid-file={self.folder}/munge.pid", f"--seed-file={self.folder}/munge.seed"),
            *(f"--log-file={self.folder}/munge.log",),
            ready=lambda: _answers("munge", "--no-input", f"--socket={connection}"),
        )
        if self.accounting:
            self._start_database()
        self._start("slurmctld", "-D", "-i", ready=lambda: _answers("scontrol", "ping"))
        for name in NODES:
            self._start("slurmd", "-D", "-N", name, ready=lambda name=name: self.node_state(name) == "idle")

    def node_state(self, name: str) -> str:
        """A node's state in sinfo's short form."""
        asked = subprocess.run(["sinfo", "-h", "-n", name, "-p", "main", "-o", "%t"], capture_output=True, text=True)
        return asked.stdout.strip()

    def stop(self) -> None:
        """Stop all jobs, then all daemons and their remaining processes, and remove the link."""
        if CONFIGURATION.is_symlink() and CONFIGURATION.readlink() == self.folder / "slurm.conf":
            subprocess.run(["scancel", "--user=root"], capture_output=True)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and subprocess.run(["squeue", "-h"], capture_output=True).stdout.strip():
                time.sleep(0.2)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        _end_processes(self.folder)
        if CONFIGURATION.is_symlink() and CONFIGURATION.readlink() == self.folder / "slurm.conf":
            CONFIGURATION.unlink()
        os.environ.pop("SLURM_CONF", None)
        if self.configured_before is not None:
            os.environ["SLURM_CONF"] = self.configured_before


def _end_processes(folder: Path) -> None:
    """Kill what still uses a cluster's folder.

    Without cgroups Slurm loses track of a process whose parent ended before it, such as a waiting Snakemake. The search is made
    twice, because a process that has just been started cannot be recognized for a moment.
    """
    for pause in (0.5, 0):
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended, or belongs to another user
                if f"{folder}/".encode() in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
        time.sleep(pause)


def remove_leftovers() -> None:
    """Remove the cluster of a test that was killed: its processes, its folder and the link.

    Otherwise, later tests would take it for a cluster that is in use, and calls of Snakemake would wait for it.
    """
    if not CONFIGURATION.is_symlink() or not (folder := CONFIGURATION.readlink().parent).name.startswith(PREFIX):
        return
    with suppress(FileNotFoundError), (folder / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another test is using it
    _end_processes(folder)
    CONFIGURATION.unlink()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(accounting: bool = False) -> Iterator[Cluster]:
    """Install Slurm if necessary, and run a cluster within the context.

    Raises:
        UnavailableError: the cluster cannot be started; the message states why.
    """
    remove_leftovers()
    # This check comes next: nothing here may ever reach a cluster that is in use.
    if CONFIGURATION.exists():
        raise UnavailableError(f"{CONFIGURATION} is there: this machine belongs to a cluster")
    install(accounting)
    # The folder must not be deep, because paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, Path(name, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # it ends with this process, even if that is killed
        folder = Path(name)
        folder.chmod(0o755)
        cluster = Cluster(folder, accounting)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run a test cluster until interrupted.")
    parser.add_argument("--accounting", action="store_true", help="with slurmdbd, so that sacct works")
    with running(parser.parse_args().accounting):
        subprocess.run(["sinfo", "--Node", "--long"])
        print("The cluster is up: sbatch and snakemake --profile slurm find it. Ctrl-C stops it.", flush=True)
        try:
            while True:
                time.sleep(60)
        except KeyboardInterrupt:
            pass
