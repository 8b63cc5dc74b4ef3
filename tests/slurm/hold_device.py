"""Hold what the scheduler gave for a while, by the function that the workflow's steps use, and note it."""

import json
import os
import sys
import time
from pathlib import Path

from advsets.devices import device_for


def main() -> None:
    n_gpus, out = int(sys.argv[1]), Path(sys.argv[2])
    here = [str(number) for number in range(4)]
    with device_for(n_gpus, locks=Path("locks"), devices=here) as device:
        started = time.time()
        time.sleep(6)
        held = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        note = {"device": device, "held": held, "started": started, "ended": time.time(), "n_wanted": n_gpus}
    out.write_text(json.dumps(note))


main()
