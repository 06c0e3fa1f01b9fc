"""The user's environment cannot change results."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys

import pytest
from support.commit import forget
from support.project import ROOT

from compositional import files
from compositional.archive import bundle
from compositional.records import provenance, surroundings

IDENTITY = ["-c", "user.name=t", "-c", "user.email=t@example.org"]


@pytest.mark.parametrize(
    "name",
    [
        *("ATEN_CPU_CAPABILITY", "BASH_ENV", "COVERAGE_PROCESS_START", "CUBLAS_WORKSPACE_CONFIG", "DNNL_MAX_CPU_ISA"),
        *("GLIBC_TUNABLES", "LANG", "LC_NUMERIC", "LD_AUDIT", "LD_PRELOAD", "MKL_CBWR", "MPLCONFIGDIR"),
        *("NPY_DISABLE_CPU_FEATURES", "NUMBA_DISABLE_JIT"),
        *("NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "ONEDNN_DEFAULT_FPMATH_MODE", "OPENBLAS_CORETYPE", "PYTHONOPTIMIZE"),
        *("PYTHONSTARTUP", "PYTHONWARNINGS", "TORCH_LINEAR_FLATTEN_3D"),
    ],
)
def test_what_changes_bytes_is_not_passed_to_jobs(name):
    environment = {name: "1", "HOME": "/home/me", "PATH": "/bin", "HF_HOME": "/cache"}
    surroundings.settle(environment, ROOT)
    assert environment.get(name) == surroundings.SET.get(name)
    assert (environment["HOME"], environment["HF_HOME"]) == ("/home/me", "/cache")
    before = dict(environment)
    surroundings.settle(environment, ROOT)  # a job on a compute node repeats what the main process has done
    assert environment | {"PATH": ""} == before | {"PATH": ""}


def test_jobs_import_the_sources_and_no_package_of_the_user(tmp_path):
    """A folder on the user's path, or user site packages, would give jobs other libraries than those of the plan."""
    for folder in ("path", "asked"):
        (tmp_path / folder).mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text("print('strange')")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "path"), "LC_ALL": "C", surroundings.PATHS: str(tmp_path / "asked")}
    surroundings.settle(environment, ROOT)
    assert environment["PYTHONNOUSERSITE"] == "1"
    code = "import sys, site, compositional, locale; print(sys.path[1:3], compositional.__file__, site.ENABLE_USER_SITE, "
    code += "locale.getpreferredencoding())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    package = ROOT / "src" / "compositional" / "__init__.py"
    assert done.stdout.split("\n")[0].lower() == f"{[str(ROOT / 'src'), str(tmp_path / 'asked')]} {package} false utf-8".lower()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        *(("NoDevFiles", ""), ("none", ""), ("void", ""), ("", ""), ("-1", "-1"), ("0,1", "0,1"), ("GPU-5ebe", "GPU-5ebe")),
        *(("MIG-1/2", "MIG-1/2"), (None, None)),
    ],
)
def test_values_that_mean_no_device_are_normalized(given, left):
    environment = {} if given is None else {surroundings.DEVICES: given}
    surroundings.settle(environment, ROOT)
    assert environment.get(surroundings.DEVICES) == left


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_that_a_step_frees_is_used_by_the_next():
    """Otherwise each step of a large pack gets its memory from the system, page by page, and gives it back at its end."""
    environment = {"PATH": os.environ["PATH"]}
    surroundings.settle(environment, ROOT)
    code = "import resource, torch\n"
    code += "def step(): return [torch.ones(size) for size in (2**24, 2**12, 2**22)] and resource.getrusage(0).ru_minflt\n"
    code += "faults = [step() for _ in range(20)]\n"
    code += "print(faults[-1] - faults[-5])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40  # pages; without these settings 2,000 (of 2 MB and 4 KB), or 80,000 (of 4 KB)


def test_a_mirror_in_a_home_folder_that_does_not_exist_is_refused():
    assert surroundings.mirror({}, "~/data") == os.path.expanduser("~/data")
    for environment, configured in (({surroundings.MIRROR: "~no_such_user/data"}, "data"), ({}, "~no_such_user/data")):
        with pytest.raises(FileNotFoundError, match=r"^~no_such_user/data: there is no home folder ~no_such_user; write"):
            surroundings.mirror(environment, configured)


def without_encoding(tree: ast.AST) -> list[int]:
    """Lines that open a text file without an encoding."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(word.arg == "encoding" for word in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        words = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        binary = any(isinstance(word, str) and "b" in word for word in words) or of in ("stored", "tarfile", "Image", "os")
        if name in ("read_text", "write_text") or (name == "open" and not binary):
            found.append(node.lineno)
        if name in ("run", "Popen") and of == "subprocess" and any(word.arg == "text" for word in node.keywords):
            found.append(node.lineno)
    return found


# Their code is part of a run's identity. The files that they open are an empty lock, or ASCII files written by the workflow.
ASCII = (
    "src/compositional/kinds/",
    "src/compositional/tasks/",
    "src/compositional/layers/",
    "src/compositional/stages/shared/devices",
)


def test_every_text_file_is_opened_with_its_encoding():
    assert without_encoding(ast.parse("path.read_text(), open(p), path.open('w'), subprocess.run(x, text=True)")) == [1] * 4
    assert without_encoding(ast.parse("path.open('rb'), path.read_text(encoding='utf-8'), Image.open(x)")) == []
    paths = [path for place in ("src", "workflow", "docs", "envs") for path in (ROOT / place).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): without_encoding(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert {name: lines for name, lines in found.items() if lines and not name.startswith(ASCII)} == {}
    assert files.json_bytes({"é": "ü"}).isascii()


@pytest.mark.parametrize("mask", [0o002, 0o022, 0o077], ids=oct)
def test_what_is_written_follows_the_umask_and_a_folder_with_setgid(tmp_path, mask):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    before = os.umask(mask)
    try:
        files.write_json(shared / "below" / "a.json", {})
        with files.replacing_folder(shared / "folder") as temporary:
            (temporary / "b").touch()
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o7777 for path in (shared / "below", shared / "below/a.json", shared / "folder")]
    assert modes == [0o2777 & ~mask, 0o666 & ~mask, 0o2777 & ~mask]


@pytest.mark.parametrize(
    ("group", "written", "cores"),
    [
        ("0::/", {"cpu.max": "100000 100000"}, 1),
        ("0::/a/b", {"a/cpu.max": "250000 100000", "a/b/cpu.max": "max 100000"}, 2),
        ("0::/unseen/outside", {"cpu.max": "50000 100000"}, 1),
        ("4:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("5:memory:/", {"cpu.max": "100000 100000"}, 8),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("", {}, 8),
    ],
)
def test_a_container_s_quota_counts_as_cores(tmp_path, monkeypatch, group, written, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    placed = {"proc/self/cgroup": group} | {f"sys/fs/cgroup/{name}": text for name, text in written.items()}
    for name, text in placed.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n" if text else "")
    assert surroundings.cores(tmp_path) == cores


def test_the_mirror_is_an_absolute_path_and_empty_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert surroundings.mirror({surroundings.MIRROR: "data"}, "/configured") == str(tmp_path / "data")
    assert surroundings.mirror({surroundings.MIRROR: ""}, "configured") == str(tmp_path / "configured")
    assert surroundings.mirror({}) == ""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A clean repository instead of the project, with the project's .gitignore, and a home folder."""
    root = tmp_path / "root"
    root.mkdir()
    (root / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    (root / "a.txt").write_text("a\n")
    for words in (["init", "-q"], ["add", "-A"], [*IDENTITY, "commit", "-qm", "t"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(provenance, "ROOT", root)
    forget()
    yield root
    forget()


def test_neither_settings_of_git_nor_what_a_hook_exports_change_what_records_say(repository, tmp_path, monkeypatch):
    expected, listed = provenance.source(), bundle.sources()
    assert not expected["dirty"]
    settings = "[log]\n showSignature = true\n[status]\n showUntrackedFiles = no\n short = true\n branch = true\n"
    settings += "[alias]\n log = !false\n"
    settings += f"[core]\n fsmonitor = false\n quotePath = true\n attributesFile = {tmp_path}/attributes\n[color]\n ui = always\n"
    (tmp_path / "attributes").write_text("* text eol=crlf\n")
    (tmp_path / "home" / ".gitconfig").write_text(settings)
    other = {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/nowhere", "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    for name, value in (other | {"GIT_TRACE": "1", "LC_ALL": "C"}).items():
        monkeypatch.setenv(name, value)
    forget()
    assert (provenance.source(), bundle.sources()) == (expected, listed)
    (repository / "new").touch()
    forget()
    assert provenance.source() == expected | {"dirty": True}  # though the user's git shows nothing untracked


def test_links_in_place_of_built_folders_do_not_make_records_dirty(repository, tmp_path):
    for name in ("results", ".venv", ".snakemake"):
        (repository / name).symlink_to(tmp_path / "home")
    assert provenance.source()["dirty"] is False
    assert {*bundle.sources()["files"]} == {".gitignore", "a.txt"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_owner_is_said(repository):
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 65534, 65534)
    assert provenance.source() == {}
    assert "safe.directory" in provenance.without_commit()
    with pytest.raises(bundle.ArchiveError, match="dubious ownership"):
        bundle.sources()


@pytest.mark.parametrize("damage", ["no git", "no commit", "broken"])
def test_a_record_without_a_commit_warns_if_there_is_a_repository(repository, monkeypatch, damage):
    if damage == "no git":
        monkeypatch.setenv("PATH", str(repository))
    elif damage == "no commit":
        subprocess.run(["git", "update-ref", "-d", "HEAD"], cwd=repository, check=True)
    else:
        (repository / ".git" / "HEAD").write_text("nonsense")
    assert provenance.source() == {}
    assert provenance.without_commit()


def test_without_a_repository_there_is_no_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    forget()
    assert provenance.without_commit() is None
    forget()
