"""The description of an archive as a Workflow Run RO-Crate (https://w3id.org/ro/wfrun/workflow/0.5, on RO-Crate 1.1)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
FORMATS = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
}
LICENSE = "https://spdx.org/licenses/MIT"


def _file(crate: ROCrate, name: str, payload: bytes) -> Any:
    """Add a file of the archive. RO-Crate requires that sizes and types are text."""
    path = PurePosixPath(name)
    properties = {"contentSize": str(len(payload)), "name": path.name, "encodingFormat": FORMATS.get(path.suffix, "text/plain")}
    return crate.add_file(dest_path=name, properties=properties)


def describe(members: dict[str, bytes], built: dict[str, Any]) -> dict[str, Any]:
    """The content of ro-crate-metadata.json.

    Args:
        members: the archive's other files by name.
        built: the manifest of the build (archive.manifest).
    """
    citation = yaml.safe_load(members["CITATION.cff"])
    source = built["source"]
    crate = ROCrate(version="1.1")
    crate.name = citation["title"]
    crate.description = citation["abstract"]
    crate.root_dataset["datePublished"] = source["date"]
    crate.root_dataset["license"] = crate.add(
        ContextEntity(crate, LICENSE, properties={"@type": "CreativeWork", "name": "MIT License", "identifier": LICENSE})
    )
    profiles = [
        crate.add(
            ContextEntity(crate, link, properties={"@type": "CreativeWork", "name": name, "version": link.rsplit("/", 1)[1]})
        )
        for link, name in PROFILES.items()
    ]
    crate.root_dataset["conformsTo"] = profiles
    crate.metadata["conformsTo"] = [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": list(PROFILES)[2]}]
    authors = [
        crate.add(ContextEntity(crate, f"#author-{number}", properties={"@type": "Organization", "name": author["name"]}))
        for number, author in enumerate(citation["authors"], 1)
    ]
    crate.root_dataset["author"] = crate.root_dataset["publisher"] = authors if len(authors) > 1 else authors[0]

    entities = {}
    for name in sorted(members):
        if name != "Snakefile":
            entities[name] = _file(crate, name, members[name])
    entities["README.md"]["about"] = crate.root_dataset
    workflow = crate.add_workflow(
        dest_path="Snakefile",
        main=True,
        lang="snakemake",
        lang_version=built["environment"]["packages"]["snakemake"],
        properties={
            "name": citation["title"],
            "version": source["commit"],
            "conformsTo": {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"},
            "contentSize": str(len(members["Snakefile"])),
            "encodingFormat": "text/plain",
            "license": {"@id": LICENSE},
        },
    )
    inputs = [
        name for name in members if name.startswith(("config/", "envs/", "archived/data/")) or name == "archived/config.json"
    ]
    results = [name for name in members if name.startswith("archived/results/")] + ["archived/manifest.json"]
    crate.add_action(
        workflow,
        identifier="#build",
        object=[entities[name] for name in sorted(inputs)],
        result=[entities[name] for name in sorted(results)],
        properties={
            "name": f"Build of {', '.join(built['figures'])}",
            "description": (
                f"snakemake results/manifest.json --configfile archived/config.json, at commit {source['commit']}"
                f"{' with changes' if source['dirty'] else ''}, Python {built['environment']['python']}. Each result's record in "
                "archived/results says what it was made of; times are left out, so that equal builds give equal archives."
            ),
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "agent": {"@id": "#author-1"},
        },
    )
    crate.root_dataset["mentions"] = crate.get("#build")
    return crate.metadata.generate()
