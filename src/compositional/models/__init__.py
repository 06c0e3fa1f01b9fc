"""What is trained. A model is a module with

    KIND             the kind of task that it takes, or several: modules of `kinds`
    REPRESENTATIONS  names of the activations that it hands to the tap
    PARAMETERS       its options, as JSON schema, each with default and description
    initialize(parameters, task, source)         one run's weights before training, by name, without a run axis; `task` is what
                                                 the task says of itself (task.json), `source` a NumPy generator
    forward(parameters, weights, batch, tap)     what it computes for R runs at once: weights (R, ...) by name, a batch of the
                                                 kind of task; every activation h in REPRESENTATIONS goes through
                                                 `h = tap(name, h, mask)`, dropout through `layers.tap.dropout(tap, h, rate)`

and, where it needs them,

    buffers(parameters, task, seed)              what a run has besides its weights and does not train, by name
    calibrate(parameters, weights, batches)      statistics of training batches that evaluation needs, by name
    fit(parameters, task, train)                 one run's weights, of a model that is not trained by gradient steps
    observe(parameters, weights, task)           values of the weights themselves, (R,) by metric, in every record of a curve
    measure(parameters, task, splits, outputs)   values of one run's outputs, by (split, metric), in evaluation
    describe(parameters, task, seed)             rows (split, metric, value) of a run that need no network
    WIDTH            by device, how many runs compute together (`training.problem.width_of`)
"""
