"""`python -m snakemake` that looks every second whether its jobs on Slurm have ended.

The plugin waits ten seconds longer after each look that finds nothing: tests would mostly wait for that.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from snakemake import cli
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(self: RemoteExecutor) -> None:
    await asyncio.sleep(1)


RemoteExecutor.sleep = sleep
sys.argv[0] = str(Path(cli.__file__).with_name("__main__.py"))
cli.main()
