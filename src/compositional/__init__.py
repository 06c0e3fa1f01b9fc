"""The library. It knows nothing of Snakemake: `workflow/scripts/` call it, each the module of `stages/` that has its name.

Plug-ins, each a module found by its name; the folder's `__init__` is the contract, `shared/` is what its modules have in common:

    datasets        raw files, with checksums
    kinds           what a split and a batch of each kind of task offer
    tasks           a dataset, split so that the test set combines parts in a way never seen in training
    models          architectures
    regularizers    terms added to the loss, scaled by lambda
    tables          rows of a figure's table from files that are not CSV
    figures         from a table to a figure and its caption

What they are made of:

    layers          layers for many runs at once
    language        vocabularies, and words and parts of logical forms that may be exchanged
    measures        compositionality, additivity and kernels, as functions of arrays
    synthesis       the search for programs that grow graphs
    training        a pack of runs, trained step by step
    evaluation      metrics, learning curves, decoding, representations

What surrounds them:

    runs            a run, its path, the grids that figures ask for
    plugins         what modules declare, read without importing them
    files           written whole or not at all
    randomness      every run's own random numbers
    configuration   what is asked for, checked against the plug-ins' declarations
    planning        what is to be made, and which runs train together
    records         where each result comes from; fingerprints of code; the store of finished runs
    archive         a build in one file, its description, and a rebuild compared with it
    stages          one module per stage: download, split, train, evaluate, represent, aggregate, plot, report
    terminal        what a build shows: how far it is, how long it will take, what failed; and what there is to build
    notebook        all of it from Python: `compositional.open` a trained run, `compositional.train` one in this process
"""

from importlib import import_module
from typing import Any

# By name, and when they are asked for: this file is a part of everything, and neither the start of a workflow nor what numbers
# depend on may have to import the rest.
OFFERED = {"open": ("trained", "open_run"), "train": ("training", "train")}


def __getattr__(name: str) -> Any:
    if name not in OFFERED:
        raise AttributeError(f"module 'compositional' has no attribute {name!r}; it offers {', '.join(OFFERED)}")
    module, function = OFFERED[name]
    return getattr(import_module(f"compositional.notebook.{module}"), function)
