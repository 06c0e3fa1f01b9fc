"""The tiny ablation on a real Slurm (support/slurm/cluster.py) with many disturbances, compared with an undisturbed local run."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import yaml
from support.project import ROOT, Project

from compositional.planning.costs import took
from compositional.records import provenance

sys.path.insert(0, str(ROOT / "tests" / "support" / "slurm"))
import cluster

FIGURE = "results/figures/ablation.pdf"
TRAINING = {"steps": 150, "record_every": 5, "curve_examples": 64}
TINY = {
    "device": "auto",  # requests GPUs, but computes without them
    "checkpoint_seconds": 0,
    "tasks": {
        name: {"train_pairs": 300, "test_pairs": 100, "training": TRAINING} for name in ("digits_concat", "digits_concat_b")
    },
}
GRIDS = [
    {"task": "digits_concat_b", "model": "cnn", "regularizers": {}, "seeds": [0, 1]},
    {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1, 1], "recombination": [0.1]}, "seeds": [0, 1]},
]
FEWER_GRIDS = [{"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1, 1]}, "seeds": [0, 1]}]
PACKS = 5  # of two runs each


def copy_of_project(folder: Path, profile: dict, pack_size: int = 2, grids: list = GRIDS) -> Path:
    """A tiny copy of the project in `folder`, with an edited Slurm profile: {key: value, or values to merge}."""
    Project(folder).keep_studies("compositional_regularization", "tensor_factorization")
    studies = {"compositional_regularization": {"figures": {"ablation": {"grids": grids}}}}
    (folder / "config" / "paper.yaml").write_text(
        yaml.safe_dump(TINY | {"pack_size": {"cpu": {"default": pack_size}}, "studies": studies})
    )
    for name, edits in {"slurm": profile, "local-gpu": {}}.items():
        path = folder / name / "config.v9+.yaml"
        settings = yaml.safe_load(path.read_text())
        for key, value in (edits | {"configfile": ["config/paper.yaml"]}).items():
            settings[key] = settings[key] | value if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(settings))
    return folder


def environment(folder: Path) -> dict[str, str]:
    """An environment with an empty home folder and without network in jobs."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return os.environ | {"HOME": str(home), "COMPOSITIONAL_PYTHONPATH": str(ROOT / "tests" / "support" / "slurm" / "offline")}


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "tests" / "support" / "slurm" / "watchful.py"), *arguments]


@contextmanager
def snakemake(folder: Path, *arguments: str) -> Iterator[subprocess.Popen]:
    """Snakemake running in a project; its output goes to output.txt there. Killed at the end if it still runs."""
    with (folder / "output.txt").open("a") as output:
        process = subprocess.Popen(
            command(*arguments), cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def finish(process: subprocess.Popen, folder: Path) -> None:
    assert process.wait(400) == 0, (folder / "output.txt").read_text()[-6000:]


def slurm(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def jobs() -> list[dict[str, str]]:
    """All of Slurm's jobs that Snakemake submitted, as scontrol shows them; "rule" is the rule's name."""
    shown = slurm("scontrol", "show", "job", "--oneliner", "--details")
    found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in shown.splitlines() if "Comment=rule_" in line]
    return [job | {"rule": job["Comment"].removeprefix("rule_")} for job in found]


def wait_for(condition: Callable[[], object], what: str, process: subprocess.Popen, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"Snakemake ended before: {what}"
        assert time.monotonic() < deadline, f"in vain waited for: {what}"
        time.sleep(0.1)


def seconds_of(duration: str) -> float:
    """Seconds of sacct's [[days-]hours:]minutes:seconds."""
    parts = [float(part) for part in duration.replace("-", ":").split(":")]
    return sum(part * unit for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False))


def log_of(folder: Path, job: dict[str, str]) -> str:
    stage, _, pack = job["rule"].partition("_")
    path = folder / "results" / "logs" / stage / f"{pack}.log"
    return path.read_text() if path.exists() else ""


def stop_in_the_middle(folder: Path, process: subprocess.Popen, packs: int) -> list[dict[str, str]]:
    """Suspend every training (SIGSTOP) after its first checkpoints, and return the jobs."""
    stopped: set[str] = set()

    def stop() -> bool:
        for job in jobs():
            if job["JobId"] not in stopped and " step " in log_of(folder, job):
                slurm("scancel", "--signal=STOP", job["JobId"])
                stopped.add(job["JobId"])
        return len(stopped) == packs

    wait_for(stop, f"{packs} trainings begun", process)
    return [job for job in jobs() if job["JobId"] in stopped]


def assert_same_results(folder: Path, reference: Path, *stages: str) -> None:
    """All results have the same bytes as the reference; records, too, except for their times."""
    compared = 0
    for path in sorted(path for stage in stages for path in (folder / "results" / stage).rglob("*.*") if path.is_file()):
        other = reference / path.relative_to(folder)
        if path.suffix == ".json":
            one, two = provenance.read(path), provenance.read(other)
            assert one["wall_seconds"] > 0
            assert two["wall_seconds"] > 0
            assert provenance.lasting(one) == provenance.lasting(two)
        else:
            assert path.read_bytes() == other.read_bytes(), path
        compared += 1
    assert compared >= 4 * len(list((folder / "results").rglob("seed=*"))) >= 4 * 6


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny ablation with the local profile, on two simulated devices."""
    folder = copy_of_project(tmp_path_factory.mktemp("local") / "project", {})
    done = subprocess.run(
        command("--profile", "local-gpu", FIGURE),
        cwd=folder,
        env=environment(folder) | {"CUDA_VISIBLE_DEVICES": "GPU-first,GPU-second"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return folder


@contextmanager
def cluster_or_skip(accounting: bool) -> Iterator[cluster.Cluster]:
    try:
        running = cluster.running(accounting)
        one = running.__enter__()
    except cluster.UnavailableError as reason:
        pytest.skip(f"no Slurm here: {reason}")
    try:
        yield one
    finally:
        running.__exit__(None, None, None)


SITE = {
    "default-resources": {"mem_mb": "1000 * attempt", "runtime": "10 * attempt"},
    "slurm-init-seconds-before-status-checks": 1,
    "latency-wait": 5,
}


def test_the_local_profile_spreads_jobs_over_gpus(reference: Path) -> None:
    used = [
        re.search("CUDA_VISIBLE_DEVICES=(.*)", path.read_text())[1] for path in (reference / "results/logs/train").glob("*.log")
    ]
    assert len(used) == PACKS
    # Without CUDA in PyTorch no job claims a GPU: it sees both and uses neither (tests/unit/stages/test_devices.py tests claims).
    assert set(used) == ({"GPU-first", "GPU-second"} if torch.backends.cuda.is_built() else {"GPU-first,GPU-second"})


def test_jobs_on_the_submitting_host_take_turns_and_use_few_processes(tmp_path: Path) -> None:
    """Splits; Snakemake itself would start up to five jobs there, with as many processes as they want."""
    folder = copy_of_project(tmp_path / "project", {"resources": {"host": 1}})
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("sinfo", "squeue", "scontrol"):  # a Slurm that answers and gets no jobs
        (commands / name).write_text("#!/bin/sh\necho MaxArraySize = 1001\n")
        (commands / name).chmod(0o755)

    def said(*arguments: str) -> str:
        here = environment(folder)
        here["PATH"] = f"{commands}{os.pathsep}{here['PATH']}"
        done = subprocess.run(
            command("--profile", "slurm", *arguments), cwd=folder, env=here, capture_output=True, text=True, check=True
        )
        return done.stdout + done.stderr

    assert "results/logs/split/pathfinder_3.log 2\n" in said("results/splits/pathfinder_3", "-n", "--printshellcmds")
    said("results/splits/digits_concat", "results/splits/digits_concat_b")
    logs = (folder / "results/logs/split").glob("digits_*.log")
    ends = [(log.stat().st_mtime, took(log)) for log in logs]
    (first, _), (second, seconds) = sorted(ends)
    assert second - seconds > first - 0.1  # together, they would begin at the same time; the log has tenths of seconds


def test_jobs_of_the_tests_have_no_network(tmp_path: Path) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    own = environment(tmp_path)
    own |= {"SLURM_JOB_ID": "1", "PYTHONPATH": own["COMPOSITIONAL_PYTHONPATH"]}  # the same as in jobs
    tried = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True)
    assert "a compute node has no network" in tried.stderr


def test_the_test_cluster_leaves_no_process_behind(tmp_path: Path) -> None:
    one = cluster.Cluster(tmp_path, accounting=False)
    left = subprocess.Popen(["sleep", "100"], env=os.environ | {"SLURM_CONF": f"{tmp_path}/slurm.conf"})
    other = subprocess.Popen(["sleep", "100"], env=os.environ | {"SLURM_CONF": "/elsewhere/slurm.conf"})
    try:
        one.stop()
        assert left.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


@pytest.mark.parametrize("alive", [True, False])
def test_only_a_killed_test_s_cluster_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool) -> None:
    folder, link = tmp_path / "slurm-test-1", tmp_path / "slurm.conf"
    folder.mkdir()
    link.symlink_to(folder / "slurm.conf")
    monkeypatch.setattr(cluster, "CONFIGURATION", link)
    daemon = subprocess.Popen(["sleep", "100"], env=os.environ | {"SLURM_CONF": f"{folder}/slurm.conf"})
    with (folder / "lock").open("w") as lock:
        if alive:
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            cluster.remove_leftovers()
            assert (link.is_symlink(), folder.exists(), daemon.poll() is None) == (alive, alive, alive)
        finally:
            daemon.kill()
            daemon.wait()


def test_another_s_cluster_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "slurm.conf"
    link.symlink_to(tmp_path / "elsewhere" / "slurm.conf")
    monkeypatch.setattr(cluster, "CONFIGURATION", link)
    cluster.remove_leftovers()
    assert link.is_symlink()


@pytest.mark.slurm
def test_disturbed_jobs_give_the_same_bytes(reference: Path, tmp_path: Path) -> None:
    """Without accounting: a canceled job, a job over its time limit, preemption, and a drained node that then fails."""
    folder = copy_of_project(tmp_path / "project", SITE)
    with cluster_or_skip(accounting=False), snakemake(folder, "--profile", "slurm", FIGURE) as process:
        trainings = stop_in_the_middle(folder, process, PACKS)
        on = {node: [job for job in trainings if job["NodeList"] == node] for node in cluster.NODES}
        assert [len(on[node]) for node in cluster.NODES] == [2, 2, 1]

        # Each job uses its assigned GPU, and no two jobs have the same.
        for node, (first, *second) in on.items():
            for job in (first, *second):
                given = re.search(r"CUDA_VISIBLE_DEVICES=(\d+)\n", log_of(folder, job))[1]
                assert f"IDX:{given}" in slurm("scontrol", "show", "job", "--details", job["JobId"])
                assert f"host {node}" in log_of(folder, job)
            if second:
                assert len({re.search(r"DEVICES=(.*)", log_of(folder, job))[1] for job in (first, *second)}) == 2

        canceled, late = on["node1"]
        preempted, failed = on["node2"], on["node3"][0]
        slurm("scontrol", "update", f"jobid={late['JobId']}", "timelimit=1")
        slurm("scancel", canceled["JobId"])
        slurm("scontrol", "update", "nodename=node3", "state=drain", "reason=test")
        slurm("scontrol", "update", "nodename=node3", "state=down", "reason=test")
        slurm("sbatch", "--partition=urgent", "--nodelist=node2", "--exclusive", "--output=/dev/null", "--wrap=sleep 3")
        finish(process, folder)

        ended = jobs()
        by_id = {job["JobId"]: job for job in ended}
        assert by_id[canceled["JobId"]]["JobState"] == "CANCELLED"
        assert by_id[late["JobId"]]["JobState"] == "TIMEOUT"
        for job in (*preempted, failed):
            assert by_id[job["JobId"]]["JobState"] == "COMPLETED"
            assert int(by_id[job["JobId"]]["Restarts"]) == 1
        assert "host node3" not in log_of(folder, failed)
        for job in (canceled, late):
            again = [other for other in ended if other["rule"] == job["rule"] and other is not by_id[job["JobId"]]]
            assert [other["JobState"] for other in again] == ["COMPLETED"]
            assert (again[0]["MinMemoryNode"], again[0]["TimeLimit"]) == ("2000M", "00:20:00")
        for job in trainings:
            steps = re.search(r"resuming from checkpoints, (\d+) steps", log_of(folder, job))
            assert 0 < int(steps[1]) < 2 * TRAINING["steps"]
        # Only packs were submitted: one job each for training and evaluation, plus two jobs that were replaced.
        assert all(job["rule"].startswith(("train_", "evaluate_")) for job in ended)
        assert len(ended) == 2 * PACKS + 2
    assert_same_results(folder, reference, "runs", "tables", "figures")


@pytest.mark.slurm
def test_killing_snakemake_loses_nothing(reference: Path, tmp_path: Path) -> None:
    """With accounting, which enforces accounts, and with larger packs than the reference; it also reports the costs of jobs."""
    site = SITE | {
        "default-resources": SITE["default-resources"] | {"slurm_account": "study", "slurm_partition": "main"},
        "slurm-status-command": "sacct",
    }
    packs, runs = 2, 6
    folder = copy_of_project(tmp_path / "project", site, pack_size=30, grids=FEWER_GRIDS)
    with cluster_or_skip(accounting=True):
        with snakemake(folder, "--profile", "slurm", FIGURE) as process:
            stop_in_the_middle(folder, process, packs)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert not (folder / FIGURE).exists()
        # As docs/slurm.md describes, the remaining jobs are canceled, and the folder is unlocked.
        slurm("scancel", "--user=root")
        subprocess.run(
            command("--profile", "slurm", "--unlock"), cwd=folder, env=environment(folder), check=True, capture_output=True
        )
        with snakemake(folder, "--profile", "slurm", FIGURE) as process:
            finish(process, folder)
        submitted = jobs()
        assert {job["Account"] for job in submitted} == {"study"}
        for job in submitted:
            assert job["rule"].startswith("evaluate_") or "resuming from checkpoints" in log_of(folder, job)
        last_call = submitted[-1]["JobName"]
        # The costs of the last call's jobs, for docs/slurm.md.
        listed = slurm("sacct", "--noheader", "--parsable2", f"--name={last_call}", "--format=JobID,TotalCPU,ElapsedRaw")
        rows = [line.split("|") for line in listed.splitlines()]
        elapsed = [float(seconds) for number, _, seconds in rows if "." not in number]
        cpu = [seconds_of(duration) for number, duration, _ in rows if "." in number]
        assert len(elapsed) == 2 * packs
        assert sum(cpu) > 0
        print(
            f"\n{len(elapsed)} jobs trained and evaluated {runs} runs (once more, from checkpoints): "
            f"{sum(cpu):.0f} CPU-seconds, {sum(elapsed):.0f} seconds of jobs"
        )
    assert_same_results(folder, reference, "runs")


@pytest.mark.slurm
def test_jobs_on_a_node_without_cuda_fail_clearly_or_use_the_cpu(tmp_path: Path) -> None:
    """A job that needs CUDA reports that there is none; a job configured for the CPU requests no GPU."""
    folder = copy_of_project(tmp_path / "project", SITE | {"retries": 0})
    target = "results/runs/digits_concat_b/cnn/none/lambda=0/seed=0/run.json"
    with cluster_or_skip(accounting=False):
        with snakemake(folder, target, "--profile", "slurm", "--config", "device=cuda") as process:
            assert process.wait(200) != 0
        (failed,) = jobs()
        assert failed["JobState"] == "FAILED"
        assert "gpu:1" in failed["TresPerJob"]
        for log in (log_of(folder, failed), Path(failed["StdOut"]).read_text()):
            assert "device: cuda was asked for, but PyTorch sees no CUDA device" in log
        with snakemake(folder, target, "--profile", "slurm", "--config", "device=cpu") as process:
            finish(process, folder)
        done = jobs()[-1]
        assert done["JobState"] == "COMPLETED"
        assert "gpu" not in done.get("TresPerJob", "")
        assert json.loads((folder / target).read_text())["status"] == "done"


def queue(state: str) -> None:
    """Set the state of the partition. When it is down, waiting jobs keep waiting and running jobs keep running."""
    slurm("scontrol", "update", "partitionname=main", f"state={state}")


def waiting(stage: str) -> list[str]:
    """The numbers of a stage's jobs that have not started."""
    return [job["JobId"] for job in jobs() if job["JobState"] == "PENDING" and job["rule"].startswith(stage)]


@pytest.mark.slurm
def test_edited_options_and_a_second_call_while_jobs_wait_mix_nothing(tmp_path: Path) -> None:
    """The second call trains a run of the first call with other options, just before the first call evaluates it."""
    grids = [{"task": "digits_concat", "model": "cnn", "regularizers": {}, "seeds": [0, 1]}]
    folder = copy_of_project(tmp_path / "project", SITE | {"retries": 0}, grids=grids)
    elsewhere, table = folder / "elsewhere", "results/tables/ablation.csv"
    run, other = (f"results/runs/digits_concat/cnn/none/lambda=0/seed={seed}" for seed in (0, 1))
    here = ("--cores", "2", "--configfile", "config/paper.yaml", "--directory", elsewhere.name)
    there = ("--profile", "slurm", "--directory", elsewhere.name)

    def options(learning_rate: float, pack_size: int = 2) -> None:
        settings = yaml.safe_load((folder / "config/paper.yaml").read_text()) | {"pack_size": {"cpu": {"default": pack_size}}}
        settings["tasks"]["digits_concat"]["training"] = {"steps": 4, "record_every": 2, "learning_rate": learning_rate}
        (folder / "config/paper.yaml").write_text(yaml.safe_dump(settings))

    def learning_rates() -> list[float]:
        records = [json.loads((elsewhere / name / "run.json").read_text()) for name in (run, other)]
        return [record["family"]["settings"]["learning_rate"] for record in records]

    options(0.001)
    with snakemake(folder, "results/splits/digits_concat", *here) as process:
        finish(process, folder)
    with cluster_or_skip(accounting=False):
        queue("down")
        with snakemake(folder, table, *there) as first:
            wait_for(lambda: waiting("train"), "the first call's training waits", first)
            (planned,) = waiting("train")
            options(0.004, pack_size=1)
            with snakemake(folder, f"{run}/metrics.csv", "--nolock", *there) as second:
                wait_for(lambda: len(waiting("train")) == 2, "the second call's training waits", second)
                (between,) = {*waiting("train")} - {planned}
                options(0.016)
                slurm("scontrol", "hold", between)
                queue("up")
                wait_for(lambda: planned not in waiting("train"), "the first call trains", first)
                queue("down")
                wait_for(lambda: waiting("evaluate"), "its evaluation waits", first)
                assert learning_rates() == [0.001, 0.001]
                weights = (elsewhere / run / "weights.safetensors").read_bytes()
                (evaluation,) = waiting("evaluate")
                slurm("scontrol", "hold", evaluation)
                slurm("scontrol", "release", between)
                queue("up")
                finish(second, folder)
            assert learning_rates() == [0.004, 0.001]
            slurm("scontrol", "release", evaluation)
            assert first.wait(200) != 0
        (refused,) = [job for job in jobs() if job["JobId"] == evaluation]
    assert f"made by other options, code or versions than planned: {run}/run.json." in log_of(elsewhere, refused)
    assert (elsewhere / run / "metrics.csv").exists()  # of the second call
    # The two calls are not mixed, and each run's origin is known: the next call takes missing runs from the store.
    assert not (elsewhere / table).exists()
    assert learning_rates() == [0.004, 0.001]
    options(0.001)
    shutil.rmtree(elsewhere / "results/logs")
    with snakemake(folder, table, *here) as process:
        finish(process, folder)
    assert learning_rates() == [0.001, 0.001]
    assert (elsewhere / run / "weights.safetensors").read_bytes() == weights
    assert " step " not in "".join(path.read_text() for path in (elsewhere / "results/logs/train").glob("*.log"))
