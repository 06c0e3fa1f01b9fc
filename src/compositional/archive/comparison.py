"""Does a rebuild agree with its archive? python -m compositional.archive.comparison <unpacked archive>
(or: python -m compositional.archive.comparison <table.csv> <other table.csv>)

With the same code, versions and device, results must have the same bytes. Otherwise training takes another path as soon as the
first bits differ, so at worst a rebuilt run is another draw from the distribution of the seeds. Two draws differ by less than
t * s * sqrt(2), and the means of two samples of n draws by less than t * s * sqrt(2 / n). Here s is the standard deviation over
seeds and t is Student's quantile, chosen such that one in 1 / LEVEL faithful tables fails (Bonferroni over the table's numbers).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from compositional import files
from compositional.archive import bundle, unpacking
from compositional.records import provenance
from compositional.records.places import ENDINGS, record_of
from compositional.tables.shared.reading import read_table

LEVEL = 0.01
ROUNDING = 1e-5  # relative: the rounding error of single precision, for numbers that are the same for all seeds
SWEPT = ["regularizer", "lambda"]  # spreads are pooled over these


@dataclass(frozen=True)
class Finding:
    """One line of the report. Verdict: "identical", "agrees", "other" (neither good nor bad), "DIFFERS" or "MISSING"."""

    what: str
    verdict: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the rebuild may pass with this line."""
        return self.verdict in ("identical", "agrees", "other")


def _measures(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns that identify a measurement (without the seed), and those that hold numbers."""
    values = ["value"] if "value" in table else [name for name in table if table[name].dtype == float and name != "lambda"]
    return [name for name in table if name not in (*values, "seed")], values


def _spread(table: pd.DataFrame, value: str, keys: list[str]) -> tuple[pd.Series, pd.Series]:
    """Standard deviation over seeds (the cell's own or, if larger, that of all regularizers and lambdas), and its degrees of
    freedom, for each row of a table."""
    by_cell = table.groupby(keys, dropna=False)[value]
    count, variance = by_cell.transform("count"), by_cell.transform("var").fillna(0.0)
    # A cell has (count - 1) degrees of freedom. They are spread evenly over its rows, so sums over rows equal sums over cells.
    freedom = ((count - 1).clip(lower=0) / count.clip(lower=1)).where(table[value].notna(), 0.0)
    pools = [name for name in keys if name not in SWEPT]
    frame = table[pools].assign(freedom=freedom, squares=freedom * variance)
    sums = frame.groupby(pools, dropna=False)[["freedom", "squares"]].transform("sum")
    pooled = (sums.squares / sums.freedom.where(sums.freedom > 0)).fillna(0.0)
    return np.sqrt(np.maximum(variance, pooled)), sums.freedom.round()


def tolerances(table: pd.DataFrame, columns: list[str], keys: list[str], numbers: int) -> tuple[pd.Series, pd.Series]:
    """How much each number, and each mean over seeds, may differ.

    Args:
        table: one row per number.
        columns: those with the archived and with the rebuilt numbers. The smaller of their spreads counts, so that an outlier
            does not widen its own tolerance.
        keys: columns that identify a measurement.
        numbers: total count of numbers and means that are compared.

    Returns:
        Tolerances of numbers and of means, aligned with the rows. A cell without spread only gets the tolerance of rounding.
    """
    spreads = [_spread(table, column, keys) for column in columns]
    spread, freedom = (pd.concat([pair[part] for pair in spreads], axis=1).min(axis=1) for part in (0, 1))
    quantile = stats.t.ppf(1 - LEVEL / (2 * numbers), freedom.clip(lower=1))
    by_cell = table.groupby(keys, dropna=False)[columns[0]]
    floors = [
        ROUNDING * size.abs().fillna(0.0) + np.finfo(np.float32).tiny for size in (table[columns[0]], by_cell.transform("mean"))
    ]
    count = by_cell.transform("count").clip(lower=1)
    return np.maximum(quantile * spread * math.sqrt(2), floors[0]), np.maximum(quantile * spread * np.sqrt(2 / count), floors[1])


def _shown(row: pd.Series, identity: list[str], value: str = "") -> str:
    """A row in words; value: the column whose change is stated."""
    place = ", ".join(f"{name} {row[name]}" for name in identity)
    return f"{place}: {row[value]} became {row[f'{value}_new']}" if value else place


def compare_tables(archived: pd.DataFrame, rebuilt: pd.DataFrame, exact: bool) -> tuple[bool, str]:
    """Whether two tables agree, and a description of the largest difference.

    exact: numbers must be equal; otherwise they must be within `tolerances`.
    """
    if list(archived) != list(rebuilt):
        return False, f"columns {', '.join(archived)} became {', '.join(rebuilt)}"
    keys, values = _measures(archived)
    identity = [*keys, *(["seed"] if "seed" in archived else [])]
    aligned = [table.assign(_copy=table.groupby(identity, dropna=False).cumcount()) for table in (archived, rebuilt)]
    both = aligned[0].merge(aligned[1], on=[*identity, "_copy"], how="outer", suffixes=("", "_new"), indicator=True)
    for side, where in (("left_only", "missing in the rebuilt table"), ("right_only", "not in the archived table")):
        if len(lost := both[both._merge == side]):
            return False, f"{len(lost)} rows are {where}, such as {_shown(lost.iloc[0], identity)}"
    numbers = sum(len(both) + both.groupby(keys, dropna=False).ngroups for _ in values)
    worst, where, compared = 0.0, "", len(both) * len(values)
    for value in values:
        old, new = both[value], both[f"{value}_new"]
        unequal = (old != new) & ~(old.isna() & new.isna())
        if exact:
            if unequal.any():
                example = _shown(both[unequal].iloc[0], identity, value)
                return False, f"{int(unequal.sum())} of {len(both)} numbers, such as {example}"
            continue
        single, mean = tolerances(both, [value, f"{value}_new"], keys, numbers)
        means = both.groupby(keys, dropna=False)[[value, f"{value}_new"]].transform("mean")
        moved = (means[f"{value}_new"] - means[value]).abs()
        lost = old.isna() != new.isna()
        ratios = pd.concat([((new - old).abs() / single), moved / mean], axis=1).max(axis=1).fillna(0.0).mask(lost, np.inf)
        if len(ratios) and ratios.max() >= worst:
            worst, where = float(ratios.max()), _shown(both.loc[ratios.idxmax()], identity, value)
    if exact:
        return True, f"{compared} numbers are equal"
    detail = f"{compared} numbers, the largest deviation is {worst:.2g} of its tolerance ({where})"
    return worst <= 1, detail


def _same_machine(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether equal bytes are expected of two records (or summaries of records)."""
    return all(one.get(key) == two.get(key) for key in ("code", "device", "device_name", "versions"))


def _environment(old: dict[str, Any], new: dict[str, Any]) -> Finding:
    names = sorted({*old["packages"], *new["packages"]})
    changes = [
        f"{name} {old['packages'].get(name)} -> {new['packages'].get(name)}"
        for name in names
        if old["packages"].get(name) != new["packages"].get(name)
    ]
    if old["python"] != new["python"]:
        changes.insert(0, f"Python {old['python']} -> {new['python']}")
    return Finding("environment", "other" if changes else "identical", "; ".join(changes) or f"{len(names)} packages and Python")


def _raw(archived: dict[str, Any], results: Path) -> list[Finding]:
    found = []
    for name, about in archived["raw"].items():
        path = results / "raw" / name
        if not path.is_file():
            found.append(Finding(f"raw data {name}", "MISSING", "it was unavailable; see the log of the rebuild"))
        elif (digest := files.sha256(path)) != about["sha256"]:
            found.append(Finding(f"raw data {name}", "DIFFERS", f"sha256 {about['sha256'][:12]}... became {digest[:12]}..."))
        else:
            found.append(Finding(f"raw data {name}", "identical"))
    return found


def _splits(folder: Path, archived: dict[str, Any], results: Path) -> list[Finding]:
    found = []
    for name in (name for name in archived["records"] if name.startswith("splits/")):
        old, new = provenance.read(folder / name), provenance.read(results / name)
        task = f"data of {old['task']}"
        if not new:
            found.append(Finding(task, "MISSING", "the task was not rebuilt"))
        elif (old["content_sha256"], old["raw_sha256"]) != (new["content_sha256"], new["raw_sha256"]):
            found.append(Finding(task, "DIFFERS", "its examples, or the raw data behind them, are not those of the archive"))
        else:
            found.append(Finding(task, "identical", "every example"))
    return found


def _runs(folder: Path, archived: dict[str, Any], results: Path) -> list[Finding]:
    """One finding per family of runs. If the bytes of runs cannot be compared, their tables decide."""
    families: dict[str, list[tuple[str, str]]] = {}
    for run, status in archived["runs"].items():
        place = Path("runs") / run
        old, new = provenance.read(folder / place / "run.json"), provenance.read(results / place / "run.json")
        if not new or any(not (results / place / name).is_file() for name in new["files"]):
            verdict = "MISSING"
        elif new["status"] != status:
            verdict = f"{new['status']} instead of {status}"
        elif all(files.sha256(results / place / name) == old["files"].get(name) for name in new["files"]):
            verdict = "identical"
        else:
            verdict = "DIFFERS" if _same_machine(old, new) else "other"
        families.setdefault(run.split("/lambda=")[0], []).append((verdict, run))
    rebuilt = {path.parent.relative_to(results / "runs").as_posix() for path in (results / "runs").rglob("run.json")}
    for run in sorted(rebuilt - archived["runs"].keys()):
        families.setdefault(run.split("/lambda=")[0], []).append(("not in the archive", run))
    found = []
    for family, verdicts in families.items():
        kinds = [verdict for verdict, _ in verdicts]
        bad = [f"{run}: {verdict}" for verdict, run in verdicts if verdict not in ("identical", "other")]
        if bad:
            detail = f"{len(bad)} of {len(kinds)}, such as {bad[0]}"
            verdict = "MISSING" if set(kinds) <= {"identical", "other", "MISSING"} else "DIFFERS"
            found.append(Finding(f"runs {family}", verdict, detail))
        elif "other" in kinds:
            detail = f"{kinds.count('other')} of {len(kinds)} on another device or version: see the tables"
            found.append(Finding(f"runs {family}", "other", detail))
        else:
            found.append(Finding(f"runs {family}", "identical", f"{len(kinds)} run{'s' * (len(kinds) > 1)}"))
    return found


def _figures(folder: Path, archived: dict[str, Any], results: Path) -> list[Finding]:
    found = []
    for figure in archived["figures"]:
        name = f"tables/{figure}.csv"
        old, new = (provenance.read(place / record_of("tables", figure)) for place in (folder, results))
        if not (results / name).is_file():
            found.append(Finding(f"table {figure}", "MISSING", "it was not rebuilt"))
            continue
        if same := files.sha256(results / name) == archived["artifacts"][name]["sha256"] == files.sha256(folder / name):
            found.append(Finding(f"table {figure}", "identical"))
        else:
            exact = _same_machine(old["made_from"], new["made_from"])
            agrees, detail = compare_tables(read_table(folder / name), read_table(results / name), exact)
            # Equal numbers with different bytes also count as a difference: the archived file is not the one that was built.
            found.append(Finding(f"table {figure}", "agrees" if agrees and not exact else "DIFFERS", detail))
        agrees = found[-1].good
        comparable = _same_machine(*(provenance.read(place / record_of("figures", figure)) for place in (folder, results)))
        for ending in ENDINGS["figures"]:
            name = f"figures/{figure}{ending}"
            what = f"{'caption' if ending == '.rst' else 'figure'} {figure}{ending}"
            if not (results / name).is_file():
                found.append(Finding(what, "MISSING", "it was not rebuilt"))
            elif files.sha256(results / name) == archived["artifacts"][name]["sha256"] == files.sha256(folder / name):
                found.append(Finding(what, "identical"))
            elif same and comparable:
                found.append(Finding(what, "DIFFERS", "the same table, drawn by the same code, gives another file"))
            elif agrees:
                found.append(Finding(what, "other", "drawn from the rebuilt table, which agrees"))
            else:
                found.append(Finding(what, "DIFFERS", "its table differs"))
    return found


def compare(unpacked: Path) -> list[Finding]:
    """All findings about a rebuild inside an unpacked archive."""
    archived = json.loads((unpacked / bundle.MANIFEST).read_text(encoding="utf-8"))
    folder, results = unpacked / bundle.FOLDER / "results", unpacked / "results"
    changes = unpacking.altered(unpacked)
    intact = f"{len(archived['artifacts'])} artifacts, {len(archived['source']['files'])} sources"
    found = [Finding("archive", "DIFFERS", change) for change in changes] or [Finding("archive", "identical", intact)]
    found.append(_environment(archived["environment"], provenance.environment(unpacked / "envs" / "requirements.txt")))
    found += [*_raw(archived, results), *_splits(folder, archived, results), *_runs(folder, archived, results)]
    return found + _figures(folder, archived, results)


def tables(archived: Path, rebuilt: Path) -> Finding:
    """Whether a rebuilt table agrees with the archived one."""
    what = f"table {rebuilt}"
    if files.sha256(archived) == files.sha256(rebuilt):
        return Finding(what, "identical")
    agrees, detail = compare_tables(read_table(archived), read_table(rebuilt), exact=False)
    return Finding(what, "agrees" if agrees else "DIFFERS", detail)


def report(found: list[Finding]) -> str:
    """The findings as a table, and the conclusion."""
    width = max(len(finding.what) for finding in found)
    lines = [f"{finding.what:<{width}}  {finding.verdict:<9}  {finding.detail}".rstrip() for finding in found]
    bad = [finding for finding in found if not finding.good]
    compared = [finding for finding in found if finding.verdict != "other"]
    if bad:
        lines += ["", f"NOT REPRODUCED: {len(bad)} of {len(compared)} do not agree."]
    else:
        exactly = sum(finding.verdict == "identical" for finding in compared)
        rest = ", the rest within the tolerance from the seeds' spread" if exactly < len(compared) else ""
        lines += ["", f"Reproduced: {exactly} of {len(compared)} to the byte{rest}."]
    return "\n".join(lines)


def main() -> int:
    """Print the comparison. Returns 0 if everything agrees, 1 if not, 2 if the comparison is impossible."""
    parser = argparse.ArgumentParser(description="Compare a rebuild with its archive, or two tables with each other.")
    parser.add_argument("archived", type=Path, help="an unpacked archive with a rebuild in it, or a table")
    parser.add_argument("rebuilt", type=Path, nargs="?", help="the other table")
    arguments = parser.parse_args()
    try:
        found = [tables(arguments.archived, arguments.rebuilt)] if arguments.rebuilt else compare(arguments.archived)
    except (LookupError, TypeError, AttributeError, ValueError, OSError) as error:
        print(f"{arguments.archived} cannot be compared ({type(error).__name__}: {error})", file=sys.stderr)
        return 2
    print(report(found))
    return 0 if all(finding.good for finding in found) else 1


if __name__ == "__main__":
    sys.exit(main())
