"""Run jobs on this machine as forks of one process that has imported the libraries, because importing takes longer than many
jobs.

    python -P -m compositional.stages.shared.forks SCRIPT ARGUMENTS...   run a job's script, in a fork if possible
    python -P -m compositional.stages.shared.forks --serve LISTENER      be that process, until standard input ends

The process imports the libraries that it reads from standard input, but nothing of this project, so each job runs the code that
is in the files when it starts. If there is no such process, or if the environments differ, a job runs in its own process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import traceback
import uuid
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SOCKET = "COMPOSITIONAL_FORKS"  # in the environment of jobs
OF_DRAWING = ("pandas", "matplotlib.pyplot", "matplotlib.backends.backend_pdf", "fontTools.subset")
OF_TRAINING = ("torch", "numba", "safetensors.torch", "datasets")
LIBRARIES = (*OF_TRAINING, "scipy.stats", "sklearn.datasets", "networkx", *OF_DRAWING)
# Snakemake tells each job how many threads it may use. For almost all jobs it is one; the others run in their own process.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
# Environment variables that no library reads when it is imported.
_OWN = ("COMPOSITIONAL_", "PYTEST_")
_OF_SHELLS = ("_", "OLDPWD", "PS1", "PWD", "PYTHONPATH", "SHLVL", "TEMP", "TEMPDIR", "TMP", "TMPDIR")
_STARTED: dict[str, subprocess.Popen[bytes]] = {}  # by address; keeps their standard inputs open
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux: the signal that a process gets when the one that it was forked from ends
_LARGEST = 2**18  # bytes of a job's request
_ALONE = b"alone"  # the answer to a job that must run in its own process


def start(environment: MutableMapping[str, str], libraries: Iterable[str] = LIBRARIES) -> None:
    """Start the process that jobs with this environment are forked from, and put its address there. It ends with this process, or
    when another one is started for this environment."""
    earlier = environment.get(SOCKET)
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # a kernel before Linux 5.3, a sandbox, or another system: nothing tells when a fork ends
        return
    if earlier not in (None, *_STARTED):
        return
    if earlier and (held := _STARTED[earlier].stdin):
        held.close()
    environment[SOCKET] = address = f"compositional-{uuid.uuid4()}"
    # Listening begins here, so a job that starts before the process is ready waits for it.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(_abstract(address))
        listener.listen(128)
        descriptor = listener.fileno()
        _STARTED[address] = subprocess.Popen(
            [sys.executable, "-P", "-m", "compositional.stages.shared.forks", "--serve", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**environment, **ONE_THREAD},
            preexec_fn=_ignore_interrupts,
            pass_fds=[descriptor],
            bufsize=0,
        )
    extend(environment, libraries)


def extend(environment: Mapping[str, str], libraries: Iterable[str]) -> None:
    """Let the process that jobs with this environment are forked from import more libraries. Jobs that start meanwhile wait."""
    serving = _STARTED.get(environment.get(SOCKET, ""))
    if serving and serving.stdin:
        with suppress(BrokenPipeError):  # it was killed; jobs then run in their own processes
            serving.stdin.write(" ".join([*libraries, "\n"]).encode())


def _abstract(address: str) -> str:
    """The name of a socket that is no file, so that nothing is left of it when its process ends, however that happens."""
    return f"\0{address}"


def _ignore_interrupts() -> None:
    """Ctrl-C is meant for jobs; the process that they are forked from ends when the build does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_common(python: list[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Properties that must be equal for a job and the process that it is forked from."""
    kept = {name: value for name, value in environment.items() if name not in _OF_SHELLS and not name.startswith(_OWN)}
    return python, kept


class _Forks:
    """The forks of this process that run, and the jobs that they are for."""

    def __init__(self, waiting: selectors.BaseSelector, own: tuple[list[str], dict[str, str]]) -> None:
        """own: what this process must have in common with a job."""
        self.waiting, self.own = waiting, own
        self.asking: dict[int, socket.socket] = {}  # connections by file descriptors that become readable when a fork ends

    def begin(self, listener: socket.socket) -> list[str]:
        """Fork for the job that asks, if it may be a fork; in the fork, the words of its command."""
        connection = listener.accept()[0]
        data, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 3)
        # Unlike a file, the socket has no owner: anyone on this machine who knows its name can connect.
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        job = json.loads(data or "{}") if user == os.getuid() else {}
        if not job or _in_common(job["python"], job["environment"]) != self.own:
            connection.close()
        else:
            # Before the fork: if this process is killed, a job that may have begun must not run again in its own process.
            with suppress(OSError):
                connection.send(b"begun")
            process = self._fork()
            if process == 0:
                return _become(job, descriptors)
            if process is None:
                with suppress(OSError):
                    connection.send(_ALONE)
                connection.close()
            else:
                ended = os.pidfd_open(process)
                self.asking[ended] = connection
                self.waiting.register(ended, selectors.EVENT_READ, process)
                self.waiting.register(connection, selectors.EVENT_READ, ended)
        for descriptor in descriptors:
            os.close(descriptor)
        return []

    @staticmethod
    def _fork() -> int | None:
        """Fork; None if the system has too little memory or too many processes, which must not end the forks that run.

        The fork is killed if this process is: its job is reported as failed, and must not write any more.
        """
        server = os.getpid()
        try:
            process = os.fork()
        except OSError:
            return None
        if not process:
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != server:
                os._exit(1)
        return process

    def end(self, ended: int, process: int) -> None:
        """Tell a job how its fork ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        connection = self.asking.pop(ended)
        self.waiting.unregister(ended)
        with suppress(KeyError):
            self.waiting.unregister(connection)
        with suppress(OSError):
            connection.send(str(status).encode())
        connection.close()
        os.close(ended)

    def abandon(self, ended: int) -> None:
        """Kill the fork of a job that was killed itself; it then ends."""
        self.waiting.unregister(self.asking[ended])
        signal.pidfd_send_signal(ended, signal.SIGKILL)


def _prepare() -> bool:
    """Import the libraries that standard input names next, once for all forks. Returns False if it has ended."""
    names = os.read(0, _LARGEST).decode()
    # Otherwise pyarrow's allocator starts a thread, and newer versions of Python warn when a process with threads is forked.
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    for name in names.split():
        with suppress(ImportError):  # jobs that need it say so
            importlib.import_module(name)
    if "numba" in sys.modules:
        # Otherwise each job would do this when it first calls a compiled function, which takes longer than importing numba.
        cpu = importlib.import_module("numba.core.registry").cpu_target
        cpu.typing_context.refresh()
        cpu.target_context.refresh()
    gc.collect()
    gc.freeze()  # garbage collection in a fork would otherwise copy the memory of all libraries
    return bool(names)


def serve(listening: int) -> list[str]:
    """Until standard input ends: import libraries that it names, fork for every job that asks, and tell it how its fork ended.

    Returns in a fork the words of the job's command; in the serving process an empty list. listening: file descriptor of the
    socket that jobs connect to.
    """
    own = _in_common([sys.prefix, sys.version], os.environ)  # before libraries add to the environment
    ending = False
    with selectors.DefaultSelector() as waiting, socket.socket(fileno=listening) as listener:
        forks = _Forks(waiting, own)
        _prepare()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(0, selectors.EVENT_READ)
        while forks.asking or not ending:
            # Libraries first: they were requested before the jobs that ask at the same time.
            for key, _ in sorted(waiting.select(), key=lambda ready: ready[0].fileobj != 0):
                if key.fileobj is listener:
                    if words := forks.begin(listener):
                        return words
                elif key.fileobj == 0 and not _prepare():
                    ending = True
                    waiting.unregister(0)
                    waiting.unregister(listener)
                elif key.fileobj in forks.asking:
                    forks.end(key.fd, key.data)
                elif key.data in forks.asking:
                    forks.abandon(key.data)
    return []


def _become(job: dict[str, Any], descriptors: list[int]) -> list[str]:
    """Turn a fork into the job's process; return the words of its command."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.path[:] = job["path"]
    # Modules of this project must come from the job's own files, which may belong to another copy of the project.
    for name in [name for name in sys.modules if name.partition(".")[0] == "compositional"]:
        del sys.modules[name]
    return job["words"]


def hand_over(words: list[str]) -> int | None:
    """Run a command in a fork. Returns its exit code (below 0: the signal that ended it), or None if forks are unavailable."""
    address = os.environ.get(SOCKET, "")
    job = {
        "words": words,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "path": sys.path,
        "python": [sys.prefix, sys.version],
    }
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(_abstract(address))
        socket.send_fds(connection, [json.dumps(job).encode()], [0, 1, 2])
        if connection.recv(16) and (ended := connection.recv(16)) != _ALONE:
            return int(ended or 1)
    return None


def _run(words: list[str]) -> int:
    """Run a script as Python does and return its exit code."""
    sys.argv = words
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        # An error before a script opens its log, such as one of an import; every script's third word is its log.
        with suppress(OSError, IndexError), Path(words[2]).open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        return 1
    return 0


def main() -> None:
    """The command line; see the docstring of this module."""
    if sys.argv[1] == "--serve":
        if words := serve(int(sys.argv[2])):
            ended = _run(words)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended)  # skip the cleanup of the libraries, which also takes longer than many jobs
    else:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a traceback while it waits
        code = hand_over(sys.argv[1:])
        if code is None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = _run(sys.argv[1:])
            gc.freeze()  # otherwise Python looks for garbage in all libraries before it ends
        elif code < 0:
            os.kill(os.getpid(), -code)
        sys.exit(code)


if __name__ == "__main__":
    main()
