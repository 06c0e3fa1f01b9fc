"""The library. It does not depend on Snakemake: each script in `workflow/scripts/` calls the module of `stages/` with its name.

Plug-ins. Each is a module that is found by its name. A folder's `__init__` is the contract, `shared/` holds code in common:

    datasets        raw files, with checksums
    kinds           what a split and a batch of each kind of task offer
    tasks           a dataset, split so that the test set combines parts in a way never seen in training
    models          architectures
    regularizers    terms added to the loss, scaled by lambda
    tables          rows of a figure's table from files that are not CSV
    figures         from a table to a figure and its caption

What the plug-ins are made of:

    layers          layers for many runs at once
    language        vocabularies, and words and parts of logical forms that may be exchanged
    measures        compositionality, additivity and kernels, as functions of arrays
    synthesis       the search for programs that grow graphs
    training        packs of runs, trained step by step
    evaluation      metrics, learning curves, decoding, representations

What surrounds the plug-ins:

    runs            a run, its path, the grids that figures ask for
    plugins         what modules declare, read without importing them
    files           writing files that are either complete or absent
    randomness      random numbers that belong to one run
    configuration   the configuration, checked against the plug-ins' declarations
    planning        what is to be made, and which runs train together
    records         where each result comes from; fingerprints of code; the store of finished runs
    archive         packing a build into one file, describing it, and comparing a rebuild with it
    stages          one module per stage: download, split, train, evaluate, represent, aggregate, plot, report
    terminal        what a build prints: progress, time left, failures; and which figures can be built
    notebook        use from Python: `compositional.open` loads a trained run, `compositional.train` trains one in this process
"""

from importlib import import_module
from typing import Any

# These modules are imported only when they are used. Every other module imports this file, so importing them here would slow down
# the start of the workflow and make them part of every fingerprint.
OFFERED = {"open": ("trained", "open_run"), "train": ("training", "train")}


def __getattr__(name: str) -> Any:
    if name not in OFFERED:
        raise AttributeError(f"module 'compositional' has no attribute {name!r}; it offers {', '.join(OFFERED)}")
    module, function = OFFERED[name]
    return getattr(import_module(f"compositional.notebook.{module}"), function)
