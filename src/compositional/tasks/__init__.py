"""What is learned. A task is a module with

    KIND             a module of `kinds`, such as "sequence" or "image": what a batch is
    DATASET          the module in `datasets/` that lists its raw files, one without files if nothing is downloaded
    PARAMETERS       its options, as JSON schema
    build(raw, parameters)   its members (a DatasetDict: "train", "test" and others) and what it says of itself, for task.json.
                     `raw` is the folder of its raw files.

What it must say of itself: "in_distribution", the member that shows how well training went, which is the first that there is of
IN_DISTRIBUTION; and "disjoint", which members may have nothing in common with training: a list of
{"columns": [those compared], "members": [those that are compared with "train"]}, with "by_design", a reason, where they do have
something in common (`stages.split.audit`). What it may say: "references", values that need no network, by metric;
"decoding" (`decoding.scores`); "primitives" (`kinds.sequence.Batch.influence`); and what its kind needs besides:

    sequence         columns input and output, words between spaces: `sentence_pairs.task` makes both return values from pairs
    image            columns image, of the feature Array2D (height, width) or Array3D (channels, height, width), and label;
                     "classes", "component_width" (None: no redundant component)
    the others       as their modules in `kinds` say

and, where it needs them,

    PARALLEL         True: `build` takes `processes`, how many it may use
    BUILT_FROM       which earlier runs it is made of: `build` takes `splits` and `metrics` (`tasks/raven_evolved.py`)
"""

# Members of a task that may stand for what was learned: the first that there is.
IN_DISTRIBUTION = ("in_distribution", "validation", "train")
