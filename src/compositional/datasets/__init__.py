"""What tasks are made of. A dataset is a module with

    FILES            a literal: its raw files by name, what each must be and where it is available (`sources`); {} if there is
                     nothing to download

and, where it needs them,

    LICENSE          a literal: "name", "url" and "redistribution", whether an archive may hold its files; without it, none may
    from_hub(name)   the bytes of a file, rebuilt from the Hugging Face hub
    extract(name, payload)   the bytes of a file, out of the archive that its address gives

Its other functions are for its tasks: usually load(raw), which reads examples from the folder of its raw files, or functions that
generate them.
"""
