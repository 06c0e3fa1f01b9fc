"""On the COMPOSITIONAL_PYTHONPATH of tests: within a Slurm job, Python cannot connect to other machines."""

import os
import socket

if "SLURM_JOB_ID" in os.environ:
    connect = socket.socket.connect

    def connect_locally(self, address):
        """Like socket.connect, but connections to other machines are refused."""
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a compute node has no network, but something connects to {address}")
        return connect(self, address)

    socket.socket.connect = connect_locally
