"""Regularizers: terms added to the loss, scaled by lambda. A regularizer is a module with

    APPLIES_TO       kinds of task, modules of `kinds`
    REPRESENTATIONS  names of model representations of which it needs at least one (empty: any model)
    PARAMETERS       its options, as JSON schema, each with default and description
    PAIRED           optional, True: it pairs the examples of a batch, whose number must be even
    LAMBDA_BELOW     optional: lambda must be smaller than this
    penalty(step)    the term R of the loss, (R,): one number per run
    perturb(step, representation)   optional: what the forward pass continues with instead of a representation
    watch(batch)     optional: what the forward pass is given instead of the batch, such as inputs that gradients are taken of
    prepare(parameters, split)      optional: what it learns from the training set, once (`step.prepared`)

A step is a `training.step.Step`.

The loss is L + lambda R. L is a mean over the examples of a batch; of sequences, cross entropy is summed over their symbols first
(not averaged), so that a lambda here is that of a mean over symbols times their number (13.7 in SCAN jump, the end included).
"""
