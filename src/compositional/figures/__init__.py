"""What is shown. A figure is a module with

    SOURCE           the files of every run that its table is made of, one name or several: CSV files, whose rows are taken as
                     they are, and others, of which a module in `tables/` makes rows; or "split": its tasks' examples
    PARAMETERS       its options, as JSON schema, each with default and description; "names": "tasks" (models, regularizers)
                     in one, or within one, says that it is such a name, or an object whose keys are: they must be known;
                     "names": "methods", that an object's values are methods, which the figure's grids must train
    draw(table, options)     the figure and its caption, from its tidy table alone; the same table gives the same bytes

and, where it needs them,

    REGULARIZED      True: one of its grids at least must have a regularizer
    ONE_MODEL        True: no task may have several models

Diverged runs have no accuracy: a figure draws the others and says that they are missing. What figures share is in `shared/`.
"""
