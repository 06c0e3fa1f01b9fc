"""Jobs that are forks of one process behave like separate processes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from compositional.stages.shared import forks

SCRIPT = """
import json, os, signal, sys, time
print(json.dumps({
    "fork": "torch" in sys.modules, "words": sys.argv[1:], "folder": os.getcwd(), "name": __name__,
    "own": os.environ.get("COMPOSITIONAL_OWN"), "process": os.getpid(),
}), flush=True)
match sys.argv[1:]:
    case ["exits", code]: sys.exit(int(code))
    case ["says"]: sys.exit("what was wrong")
    case ["raises"]: raise ValueError("what was wrong")
    case ["is", "killed"]: os.kill(os.getpid(), signal.SIGKILL)
    case ["waits"]: time.sleep(60)
"""


def without_forks() -> dict[str, str]:
    """The environment of jobs, with no process to be forked yet."""
    found = {name: value for name, value in os.environ.items() if name != forks.SOCKET}
    return found | forks.ONE_THREAD | {"PYTHONPATH": str(Path(forks.__file__).parents[3])}


def call(folder: Path, environment: dict[str, str], *words: str, stdin: IO | int = subprocess.DEVNULL) -> subprocess.Popen:
    """The process of a rule's command that runs job.py in a folder."""
    command = [sys.executable, "-P", "-m", "compositional.stages.shared.forks", "job.py", *words]
    streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, **streams)


def ends(process: int) -> bool:
    """Whether a process ends soon."""
    deadline = time.monotonic() + 20
    while (there := Path(f"/proc/{process}").exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not there


@pytest.fixture(scope="module")
def environment():
    """The environment of jobs, with a process to be forked."""
    found = without_forks()
    forks.start(found)
    yield found
    serving = forks._STARTED.pop(found[forks.SOCKET])
    serving.stdin.close()
    assert serving.wait(20) == 0


@pytest.fixture
def job(environment, tmp_path):
    """A function that calls a job like a rule and returns the process."""
    (tmp_path / "job.py").write_text(SCRIPT)
    return lambda *words, **additions: call(tmp_path, environment | additions, *words)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_the_process_that_is_forked_has_one_thread(environment):
    """A fork would have only one of several, and Python 3.12 and newer warn about it."""
    tasks = Path(f"/proc/{forks._STARTED[environment[forks.SOCKET]].pid}/task")
    names = [(task / "comm").read_text().strip() for task in tasks.iterdir()]
    assert len(names) == 1, names


def test_a_job_is_a_fork_with_its_own_arguments_folder_environment_and_streams(job, tmp_path):
    output, errors = job("one", "two words", COMPOSITIONAL_OWN="mine").communicate()
    told = json.loads(output)
    assert told.pop("process")
    assert not errors
    own = {"words": ["one", "two words"], "folder": str(tmp_path), "own": "mine"}
    assert told == own | {"fork": True, "name": "__main__"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["exits", "0"], 0, ""),
        (["exits", "3"], 3, ""),
        (["says"], 1, "what was wrong\n"),
        (["raises"], 1, "ValueError: what was wrong\n"),
        (["is", "killed"], -signal.SIGKILL, ""),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_the_caller_sees_how_a_job_ends(job, words, code, said, alone):
    process = job(*words, **({forks.SOCKET: ""} if alone else {}))
    output, errors = process.communicate()
    assert json.loads(output)["fork"] is not alone
    assert (process.returncode, errors[-len(said) :] if said else errors) == (code, said)


@pytest.mark.parametrize(
    "additions", [{"OMP_NUM_THREADS": "2"}, {"HF_HOME": "/elsewhere"}, {forks.SOCKET: "/nowhere"}, {"CUDA_VISIBLE_DEVICES": "7"}]
)
def test_a_job_with_another_environment_for_libraries_is_not_forked(job, additions):
    output, _ = job("one", **additions).communicate()
    assert json.loads(output)["fork"] is False


@pytest.mark.parametrize("lacks", [OSError(errno.ENOSYS, "Function not implemented"), AttributeError("pidfd_open")])
def test_a_system_that_cannot_watch_forks_starts_none(monkeypatch, lacks):
    """A kernel before Linux 5.3, whatever Python was compiled for: the first fork's end would end the process of all."""

    def pidfd_open(process: int) -> int:
        raise lacks

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    started, environment = dict(forks._STARTED), without_forks()
    forks.start(environment)
    assert forks.SOCKET not in environment
    assert started == forks._STARTED


def test_killing_a_job_kills_its_fork(job):
    process = job("waits")
    fork = json.loads(process.stdout.readline())["process"]
    assert fork != process.pid
    process.kill()
    process.wait()
    assert ends(fork)


def test_a_job_of_another_copy_of_the_project_runs_that_copys_code(job, tmp_path):
    folder = tmp_path / "copy" / "compositional" / "stages" / "shared"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parents[1]):
        (package / "__init__.py").touch()
    shutil.copy(forks.__file__, folder)
    (tmp_path / "job.py").write_text("import sys, compositional\nprint('torch' in sys.modules, compositional.__file__)")
    output, errors = job(PYTHONPATH=str(tmp_path / "copy")).communicate()
    assert output == f"True {tmp_path}/copy/compositional/__init__.py\n", errors


@pytest.fixture
def own(monkeypatch):
    """An environment in which a test starts processes to be forked itself."""
    monkeypatch.setattr(forks, "_STARTED", {})
    yield without_forks()
    for serving in forks._STARTED.values():
        serving.kill()
        serving.wait()
        serving.stdin.close()


def test_a_job_waits_until_the_libraries_are_imported_and_a_second_process_replaces_the_first(tmp_path, own):
    (tmp_path / "job.py").write_text("import sys; print([name in sys.modules for name in ('pandas', 'scipy.stats', 'torch')])")
    for libraries, there in ((["pandas"], [True, False, False]), (["no_such_library", "scipy.stats"], [False, True, False])):
        forks.start(own, libraries)
        done = call(tmp_path, own)
        assert (*done.communicate(), done.returncode) == (f"{there}\n", "", 0)
    first, second = forks._STARTED.values()
    assert first.wait(20) == 0
    second.stdin.close()
    assert second.wait(20) == 0


def test_the_process_imports_more_libraries_before_the_jobs_that_follow(tmp_path, own):
    (tmp_path / "job.py").write_text(
        "import os, sys; print(os.getppid(), [name in sys.modules for name in ('pandas', 'scipy.stats')])"
    )
    forks.start(own, ["pandas"])
    (serving,) = forks._STARTED.values()
    for there in ([True, False], [True, True]):
        done = call(tmp_path, own)
        assert (*done.communicate(), done.returncode) == (f"{serving.pid} {there}\n", "", 0)
        forks.extend(own, ["no_such_library", "scipy.stats"])


def test_libraries_for_a_process_that_was_killed_are_no_error(own):
    forks.start(own, [])
    (serving,) = forks._STARTED.values()
    serving.kill()
    serving.wait()
    forks.extend(own, ["pandas"])
    forks.extend(own | {forks.SOCKET: "another"}, ["pandas"])


def test_a_job_that_waits_runs_alone_if_the_process_dies(tmp_path, own):
    (tmp_path / "job.py").write_text("import sys; print('torch' in sys.modules)")
    forks.start(own)
    (serving,) = forks._STARTED.values()
    os.kill(serving.pid, signal.SIGSTOP)
    waiting = call(tmp_path, own)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    serving.kill()
    assert waiting.communicate(timeout=20) == ("False\n", "")


def test_a_fork_that_fails_makes_its_job_run_alone_and_ends_no_other(tmp_path, own):
    (tmp_path / "failing.py").write_text("""
import os
forks = iter([os.fork])
def fork():
    if one := next(forks, None):
        return one()
    raise BlockingIOError("too many processes")
os.fork = fork
""")
    (tmp_path / "job.py").write_text("import sys; print('failing' in sys.modules, flush=True); sys.stdin.read()")
    own["PYTHONPATH"] += f":{tmp_path}"
    forks.start(own, ["failing"])
    reads, writes = os.pipe()
    with open(reads) as held:
        waiting = call(tmp_path, own, stdin=held)
        assert waiting.stdout.readline() == "True\n"
        assert call(tmp_path, own).communicate(timeout=20) == ("False\n", "")
        assert waiting.poll() is None
        os.close(writes)
    assert waiting.wait(20) == 0
    waiting.communicate()


def test_killing_the_process_that_is_forked_ends_its_jobs(tmp_path, own):
    """They are reported as failed, so they must not write afterwards."""
    (tmp_path / "job.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    forks.start(own, [])
    job = call(tmp_path, own)
    fork = int(job.stdout.readline())
    assert fork != job.pid
    (serving,) = forks._STARTED.values()
    serving.kill()
    assert job.wait(20) == 1
    assert ends(fork)
    job.communicate()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")
def test_another_user_cannot_have_jobs_run(environment, tmp_path):
    """A job with everything that the process must have in common with it, except the user."""
    job = {"words": ["job.py"], "folder": str(tmp_path), "environment": environment, "path": sys.path}
    request = json.dumps(job | {"python": [sys.prefix, sys.version]})
    (tmp_path / "job.py").write_text("open('begun', 'w')")
    ask = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.connect("\\0" + sys.argv[2])
    socket.send_fds(connection, [sys.stdin.buffer.read()], [0, 1, 2])
    print(connection.recv(16), connection.recv(16))
"""
    for user, answers in (("65534", "b'' b''"), ("0", "b'begun' b'0'")):
        words = [sys.executable, "-c", ask, user, environment[forks.SOCKET]]
        done = subprocess.run(words, input=request, capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr, (tmp_path / "begun").exists()) == (answers, "", user == "0")
