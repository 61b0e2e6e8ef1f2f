"""pmap, shard_map and sharded parameters on forced CPU devices, which only a fresh process can have."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("several_devices.py")


def test_every_way_of_sharing_the_work_agrees_with_one_device() -> None:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "by_pmap agrees",
        "by_shard_map agrees",
        "by_sharded_parameters agrees",
        "by_explicit_sharding agrees",
    ]
