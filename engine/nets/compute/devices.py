"""What networks can run on here, in words."""

import os
import platform

import torch


def found_devices() -> dict[str, str]:
    """The devices that an option may name, each with what it is."""
    arithmetic = torch.backends.cpu.get_cpu_capability()
    found = {"cpu": f"{platform.processor() or platform.machine()} ({arithmetic}), {os.cpu_count()} cores"}
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        found[f"cuda:{index}"] = f"{card.name}, {card.total_memory >> 20} MiB"
    if torch.backends.mps.is_available():
        found["mps"] = "Apple's GPU"
    return found
