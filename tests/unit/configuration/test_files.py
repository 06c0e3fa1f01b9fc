"""Configuration files that cannot be read, or that change each other unnoticed, are named."""

from __future__ import annotations

import json
import re
from functools import reduce
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config
from support.configurations import STUDIES, read

from compositional.configuration import files as config_files
from compositional.configuration.configuration import ConfigurationError

CONFIG = Path(__file__).parents[3] / "config"
FIGURE = b"{studies: {s: {figures: {f: {grids: [{task: a}]}}}}, tasks: {t: {size: 1}}}"


@pytest.mark.parametrize("loader", [config_files._Loader, yaml.SafeLoader])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", " has no keys at its top level.*delete the file"),
        (b"# nothing yet\n", " has no keys at its top level"),
        (b"- a\n", " has no keys at its top level"),
        (b"tasks:\n  a: {}\n b: {}\n", ", line 3, column 2: .*indentation"),
        (b"tasks:\n\ta: {}\n", ", line 2, column 1: .*spaces"),
        (b"tasks: \x01\n", ": .*characters are not allowed"),
        (b"tasks: !unknown {}\n", ", line 1, column 8: could not determine a constructor"),
        (b"# one\n# \xe9\ntasks: {}\n", ", line 2: this is not UTF-8"),
        (b"device: cpu\ndevice: cuda\n", ", line 2, column 1: the key 'device' is already in line 1"),
        (b"tasks:\n  - a: {b: 1, c: 2, b: 1}\n", ", line 2, column 21: the key 'b' is already in line 2"),
        (b'models: {5: {}, "5": {}}\n', ", line 1, column 17: the key '5' is already"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path, monkeypatch, loader, content, message):
    monkeypatch.setattr(config_files, "_Loader", loader)
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=re.escape(str(path)) + message) as caught:
        config_files.check([], [path])
    assert "\n" not in str(caught.value)


BOMB = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize("loader", [config_files._Loader, yaml.SafeLoader])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (
                f"tasks: {{a: {{size: {bare}}}}}\n",
                rf', line 1, column 19: YAML reads the bare {re.escape(bare)} as .*"{re.escape(bare)}" in quotes',
            )
            for bare in ("007", "1:30", "1:30.5", "1_000", "0b11", "on", "Off", "yes", "NO", "2026-01-02", "1_0.5")
        ),
        ('a: !!bool "no"\n', ", line 1, column 4: YAML reads the bare no as False"),
        ("a: 2026-01-02\n", ', line 1, column 4: YAML reads the bare 2026-01-02 as a date; write "2026-01-02" in quotes$'),
        ("a: !!timestamp abc\n", ", line 1, column 4: YAML reads the bare abc as a date"),
        ("a: 1.0e-400\n", ", line 1, column 4: 1.0e-400 is too small: it would be read as 0"),
        ('{"a": 0.1e-330}', ": 0.1e-330 is too small: it would be read as 0"),
        ("a: [1" + "0" * 5000 + "]\n", ": Exceeds the limit"),
        ("device:\tcpu\n", ", line 1, column 8: .*spaces"),
        ("null: 1\n", ', line 1, column 1: YAML does not read the bare key null as text; write "null" in quotes'),
        ("tasks: {true: {}}\n", ", line 1, column 9: YAML does not read the bare key true as text"),
        ("tasks: &a {b: *a}\n", ", line 1, column 8: this contains itself"),
        ("tasks: &a [[*a]]\n", ", line 1, column 8: this contains itself"),
        (BOMB, ": with its aliases expanded this has more than 1000000 entries"),
        ("tasks: " + "[" * 5000 + "]" * 5000, ": this is nested too deeply"),
        ('{"device": "cpu",\n\t"device": "cuda"}', ": the key 'device' is twice in one object"),
        ('{"tasks": {"a": {"b": 1, "b": 2}}}', ": the key 'b' is twice in one object"),
        ("[" * 100_000, ": "),
    ],
)
@pytest.mark.parametrize("suffix", [".yaml", ".json", ".conf"])
def test_yaml_that_means_something_else_than_it_looks_like_is_refused_for_every_suffix(
    tmp_path, monkeypatch, loader, content, message, suffix
):
    monkeypatch.setattr(config_files, "_Loader", loader)
    path = tmp_path / f"overlay{suffix}"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=re.escape(str(path)) + f"(, line \\d+, column \\d+)?{message}"):
        config_files.check([], [path])


def test_yaml_that_means_what_it_looks_like_is_read(tmp_path):
    path = tmp_path / "overlay.json"
    path.write_text('{"device": "cpu",\n\t"seeds": [1, 2.5, 1e-3, true, null]}')
    assert config_files.read(path)["seeds"] == [1, 2.5, 0.001, True, None]
    path.write_text("a: [0, -7, 0x1F, 1.5, 1.0e-3, .inf, true, False, null, ~, '007', \"on\"]\nb: |\n  yes\n5: {0.1: c}\n")
    assert config_files.read(path) == yaml.safe_load(path.read_text())


def test_merge_keys_and_the_shipped_files_are_read_like_yaml_safe_load(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b, <<: *a, x: 4}\n")
    assert config_files.read(path) == yaml.safe_load(path.read_text())
    shipped = [CONFIG / "config.yaml", *CONFIG.glob("studies/*.yaml")]
    config_files.check(shipped, [CONFIG / "paper.yaml", *CONFIG.glob("paper/*.yaml")])
    assert [config_files.read(file) for file in shipped] == [yaml.safe_load(file.read_text()) for file in shipped]


def test_a_study_may_not_change_another_study_but_an_overlay_may(tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_bytes(FIGURE)
    second.write_bytes(FIGURE)
    config_files.check([first], [second])
    with pytest.raises(ConfigurationError, match=r"studies\.s\.figures\.f is in .*a\.yaml and again in .*b\.yaml: rename it"):
        config_files.check([first, second], [])
    second.write_bytes(FIGURE.replace(b"f:", b"g:"))
    config_files.check([first, second], [])
    second.write_bytes(FIGURE.replace(b"f:", b"g:").replace(b"size: 1", b"size: 2"))
    with pytest.raises(ConfigurationError, match=r"tasks\.t is in .*a\.yaml and again in .*b\.yaml"):
        config_files.check([first, second], [])
    first.write_bytes(b"device: cpu\npack_size: {cpu: {default: 5, t: 1}}\n")
    second.write_bytes(b"device: cpu\npack_size: {cpu: {default: 5, u: 2}, cuda: {t: 2}}\n")
    config_files.check([first, second], [])
    for content, name in ((b"device: cuda", "device"), (b"pack_size: {cpu: {t: 2}}", r"pack_size\.cpu\.t")):
        second.write_bytes(content)
        config_files.check([first], [second])
        with pytest.raises(ConfigurationError, match=rf"^{name} is in .*a\.yaml and again in .*b\.yaml: keep it in one"):
            config_files.check([first, second], [])
    wrong = [
        b"studies: 5",
        b"studies: {s: [f]}",
        b"studies: {s: {figures: }}",
        b"tasks: [t]",
        b"pack_size: 5",
        b"pack_size: {cpu: 5}",
    ]
    for content in wrong:
        second.write_bytes(content)
        config_files.check([first, second], [])  # left to the schema, which names the key


def test_studies_are_files_with_either_suffix_except_hidden_files_of_editors(tmp_path):
    (tmp_path / "studies").mkdir()
    for name in ("b.yml", "a.yaml", ".a.yaml.swp", ".#a.yaml", "notes.txt"):
        (tmp_path / "studies" / name).touch()
    assert config_files.shipped(tmp_path) == [tmp_path / "config.yaml", tmp_path / "studies/a.yaml", tmp_path / "studies/b.yml"]


def test_what_is_given_changes_the_shipped_configuration_or_replaces_it(tmp_path):
    (tmp_path / "studies").mkdir()
    (tmp_path / "config.yaml").write_text("device: cpu\nstore: here\ntasks: {t: {size: 1, seeds: [0, 1]}}\n")
    (tmp_path / "studies/a.yaml").write_text("tasks: {u: {size: 2}}\n")
    given = {"tasks": {"t": {"seeds": [2]}}, "mirror": None}
    merged = {"device": "cpu", "tasks": {"t": {"size": 1, "seeds": [2]}, "u": {"size": 2}}, "mirror": None}
    assert config_files.whole(tmp_path, given, [], False, None) == merged | {"store": "here"}
    assert config_files.whole(tmp_path, given, [], False, "there") == merged | {"store": "there"}
    assert config_files.whole(tmp_path, given, [], True, None) == given | {"store": None}
    assert given == {"tasks": {"t": {"seeds": [2]}}, "mirror": None}
    with pytest.raises(ConfigurationError, match=r"the module gets the configuration \['a'\], must be a mapping"):
        config_files.whole(tmp_path, ["a"], [], False, None)
    (tmp_path / "overlay.yaml").write_text("5")
    with pytest.raises(ConfigurationError, match="overlay"):
        config_files.whole(tmp_path, given, [tmp_path / "overlay.yaml"], False, None)


def test_configurations_are_merged_as_snakemake_does_it():
    given = [read("config.yaml", *STUDIES), read("paper.yaml")]
    ours = reduce(config_files.merged, given, {})
    theirs: dict = {}
    for own in given:
        update_config(theirs, own)
    assert ours == theirs
    assert json.dumps(ours) == json.dumps(theirs)  # in the same order


def test_a_problem_names_the_file_in_which_it_is_written(tmp_path):
    (tmp_path / "study.yaml").write_text("tasks: {a.b: {size: 1, other: 2}}\nmodels: {cnn: {}}")
    (tmp_path / "over.yaml").write_text("tasks: {a.b: {size: 3, szie: 4}}\nstudies: {s: {grids: [{task: a}]}}")
    paths = [tmp_path / name for name in ("study.yaml", "over.yaml", "none.yaml")]
    config = reduce(config_files.merged, map(config_files.read, paths[:2]), {"device": "gpu"})
    config = config_files.merged(config, {"models": {"cnn": {"width": 0}}})
    for problem, file in (
        ("tasks.a.b.size: 3 is wrong", "over.yaml"),
        ("tasks.a.b.other: 2 is wrong", "study.yaml"),
        ("tasks.a.b: unknown key 'szie'; did you mean 'size'?", "over.yaml"),
        ("studies.s.grids.0.task, studies.s.grids.1.task and 3 more: unknown task 'a'", "over.yaml"),
    ):
        assert config_files.named(problem, config, paths, "--config") == f"{tmp_path / file}: {problem}"
    for problem in ("models.cnn.width: 0 is wrong", "device: 'gpu' is not allowed"):
        assert config_files.named(problem, config, paths, "--config") == f"--config: {problem}"
    problem = "(top level): 'store' is a required property: add it"
    assert config_files.named(problem, config, paths, "--config") == problem
    assert config_files.named("models.cnn.width: 0 is wrong", config, paths, "") == "models.cnn.width: 0 is wrong"
