"""The library. It knows nothing of Snakemake: `workflow/scripts/` call it, most of them a module of `stages/`.

Of what there is much, each is a module of its own, found by its name, in `datasets/`, `tasks/`, `models/`, `regularizers/` (the
contract of these is in `regularization`) and `figures/`. `collectors/` make rows of a figure's table from files that are none;
`synthesis/` is the search for programs. The modules beside these packages, by what they are about:

    what is asked for      config_files; configuration, checked against the modules' declarations, of which documentation makes
                           tables
    what is to be done     grid: runs and their paths; plan: which train together; fingerprint: the code behind a result
    what is kept           files: whole or absent; store: finished runs; provenance: the records; integrity: damage
    what is told           progress of a build; report: a page about it; archive: one file of it, which crate describes and by
                           which comparison checks a rebuild
    from raw data          sources: downloads; splitting: a task written and audited
    parts of tasks         sentences, pairs, same_class, symbolic, measurements; vocabulary; lexicon: words that may be
                           exchanged; terms: so may parts of logical forms; pathfinder_solver: a check on its images; samples:
                           examples to show
    batches                a module a kind of task: sequences, images, composites, combinations, tensors, points, puzzles;
                           labels: what those with class labels share
    training               training of a pack; regularization; randomness; devices; curves: what is recorded
    layers for many runs   packed, attention, lstm, lstm_compiled, recurrent, pooling; calibration: of batch normalization;
                           compiled: functions compiled by numba
    evaluation             evaluation; decoding; mistakes in words
    what networks show     activations; probes: of which examples; representations, measured by compositionality; conjunctions,
                           measured by additivity (and salience); kernels: the theory of both; item_values of additions;
                           factorization: components and spectra of factorizations
"""
