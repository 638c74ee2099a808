"""Device settings, and the choice of a torch device; torch is imported only inside functions."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")
"""Allowed names of the device on which a model is trained; `auto` chooses one that this machine has."""


@dataclass(kw_only=True)
class Device:
    """Settings of the device for a command that does not train models; computations are in float32."""

    device: str = "cpu"  # `cpu` or `cuda`; not mps, which has no float64 for sums

    def __post_init__(self) -> None:
        one_of("trainer.device", self.device, ("cpu", "cuda"))


@dataclass(kw_only=True)
class RunsDevice:
    """Settings of the device for a command that trains models and evaluates the trained runs."""

    device: str | None = None  # `auto`, `cpu`, `cuda` or `mps`; by default that in the runs' own settings

    def __post_init__(self) -> None:
        if self.device is not None:
            one_of("trainer.device", self.device, DEVICES)


def evaluation_device(device: str) -> Device:
    """Return CUDA for evaluation if the run's setting is "cuda" and CUDA is available; otherwise the CPU."""
    import torch

    return Device(device="cuda" if device == "cuda" and torch.cuda.is_available() else "cpu")


def refuse_missing_device(name: str) -> None:
    """Raise UserError, without importing torch, if this machine obviously lacks a device.

    `torch_device` later checks whether torch can use it.
    """
    if "torch" in sys.modules:
        torch_device(name)
    elif (name == "cuda" and not _may_have_cuda()) or (name == "mps" and sys.platform != "darwin"):
        raise UserError(f"trainer.device ({name}) is not on this machine (it has: cpu)")


def _may_have_cuda() -> bool:
    from importlib import metadata

    build = metadata.version("torch").partition("+")[2]
    if build == "cpu" or sys.platform == "darwin":
        return False
    if build.startswith("rocm") or sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libcuda.so.1")  # the driver, which torch loads in the same way
    except OSError:
        return False
    return True


def torch_device(name: str) -> torch.device:
    """Return the torch device for a name in `DEVICES`; `auto` is the first available of cuda, mps and cpu.

    Raises:
        UserError: this machine has no such device.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(one for one, is_there in there.items() if is_there)
    if not there[name]:
        have = ", ".join(one for one, is_there in there.items() if is_there)
        raise UserError(f"trainer.device ({name}) is not on this machine (it has: {have})")
    return torch.device(name)
