"""The devices that compute networks: names, and which of them are here. Asks torch only where a GPU is."""

import ctypes
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from engine.system import one_line

EXPECTED = "auto, cpu, mps, cuda or cuda:N"
DRIVERS = ("libcuda.so.1", "nvcuda.dll")
"""NVIDIA's driver on Linux and Windows"""


@cache
def has_gpu() -> bool:
    """Whether a GPU is here that torch may be able to use: one of NVIDIA's, by its driver, or Apple's."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    for name in DRIVERS:
        with suppress(OSError, AttributeError):
            driver, count = ctypes.CDLL(name), ctypes.c_int(0)
            if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
                return count.value > 0
    # ROCm's torch calls its GPUs cuda too.
    return Path("/dev/kfd").exists()


def imported_torch(purpose: str) -> Any:
    """The module torch.

    Args:
        purpose: what needs it, for the message.
    Raises:
        ValueError: torch cannot be imported; one line that says what to install.
    """
    try:
        import torch
    except (ImportError, OSError) as error:
        raise ValueError(
            f"{purpose} needs PyTorch, which cannot be imported ({one_line(error)}), expected: pip install torch"
        ) from error
    return torch


def choose_devices(device: str = "auto") -> list[str]:
    """The devices named by an option: one, or several GPUs separated by commas.

    ``auto`` is the first CUDA device, else Apple's GPU, else the CPU.

    Raises:
        ValueError: a device is not available or named twice, or the CPU is named beside a GPU, which would wait for it.
    """
    if device == "auto":
        return [auto_device()]
    chosen = [checked_device(name.strip()) for name in device.split(",")]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"device {device!r} names one twice, expected each once")
    if len(chosen) > 1 and "cpu" in chosen:
        raise ValueError(f"device {device!r} has the CPU beside others, expected the CPU alone or several GPUs")
    return chosen


def auto_device(has_mps: bool = True) -> str:
    """The first CUDA device that torch can use, else Apple's GPU (unless ``has_mps`` is False), else the CPU."""
    if has_gpu():
        with suppress(ValueError):
            torch = imported_torch("a GPU")
            if torch.cuda.is_available():
                return "cuda:0"
            if has_mps and torch.backends.mps.is_available():
                return "mps"
    return "cpu"


def checked_device(device: str) -> str:
    """The name of an available device; plain ``cuda`` is the first one.

    Raises:
        ValueError: no such device here; one line.
    """
    if device == "cpu":
        return device
    torch = imported_torch(f"device {device!r}")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"unknown device {device!r}, expected {EXPECTED}") from error
    try:
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used here ({one_line(error)}), expected {EXPECTED}") from error
    return f"cuda:{chosen.index or 0}" if chosen.type == "cuda" else str(chosen.type)


def found_devices() -> dict[str, str]:
    """The available devices by name, each with a description."""
    found = {"cpu": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"}
    if not has_gpu():
        return found
    with suppress(ValueError):
        torch = imported_torch("a GPU")
        for index in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(index)
            found[f"cuda:{index}"] = f"{card.name}, {card.total_memory >> 20} MiB"
        if torch.backends.mps.is_available():
            found["mps"] = "Apple's GPU"
    return found


def torch_device(device: str = "auto", threads: int = 0) -> Any:
    """The torch device for training: ``auto`` is CUDA if available, else the CPU.

    Args:
        threads: sets the number of torch's CPU threads; 0 = unchanged.
    Raises:
        ValueError: no such device here; one line.
    """
    torch = imported_torch("this command")
    # A thread that has not computed yet would take the number last set by any thread, such as an evaluator's 1.
    torch.set_num_threads(threads or torch.get_num_threads())
    return torch.device(auto_device(has_mps=False) if device == "auto" else checked_device(device))
