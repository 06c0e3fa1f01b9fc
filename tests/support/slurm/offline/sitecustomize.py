"""On the COMPOSITIONAL_PYTHONPATH of tests: inside a Slurm job, Python reaches nothing beyond this machine."""

import os
import socket

if "SLURM_JOB_ID" in os.environ:
    connect = socket.socket.connect

    def connect_locally(self, address):
        """As socket.connect, refused for other machines."""
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a compute node has no network, but something connects to {address}")
        return connect(self, address)

    socket.socket.connect = connect_locally
