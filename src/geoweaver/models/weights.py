"""Weights from files: safetensors, or PyTorch's own format without running anything; every key counts."""

import hashlib
import json
import pickle
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from geoweaver.errors import FormatError, InputError

State = dict[str, Tensor]

_RENAMED = (
    (r"(^|\.)net\.", r"\1backbone."),
    (r"(^|\.)all_heads\.camera_cond_head\.", r"\1cam_enc."),
    (r"(^|\.)all_heads\.camera_head\.", r"\1cam_dec."),
    (r"(^|\.)all_heads\.head\.", r"\1head."),
    (r"(^|\.)camera_cond_head\.", r"\1cam_enc."),
    (r"\.camera_token_extra$", ".camera_token"),
    (r"\.more_mlps\.", ".backbone."),
    (r"\.fc_rot\.", ".fc_qvec."),
    (r"output_conv2_additional\.sky_mask\.", "sky_output_conv2."),
    (r"_ray\.", "_aux."),
    (r"(^|\.)gaussian_param_head\.", r"\1gs_head."),
)
"""Names in DA3's older .pth files, and what its published checkpoints call them."""
_WRAPPERS = ("state_dict", "model", "model_state_dict")
_SHARED_NORM = re.compile(r"^(.*output_conv2_aux\.)0(\.2\.(?:weight|bias))$")
_STUMBLES = (
    RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
    AssertionError, OSError, struct.error,
)  # fmt: skip
"""What damaged bytes make the unpickler and the archive reader raise."""
IGNORED = ("gs_head.", "gs_adapter.", "da3.gs_head.", "da3.gs_adapter.")
"""Prefixes of parts that the GPM does not have: the giant model's Gaussian splats."""


def read_state(path: Path, device: str = "cpu") -> State:
    """The tensors of a weight file, whatever its suffix; a file that would run code is refused.

    On the device "meta" they are names and sizes alone: enough to tell a wrong or damaged file at once.
    """
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; give a folder with config.json and model.safetensors, or a weight file"
        )
    if _is_safetensors(path):
        return _read_safetensors(path, device)
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PK\x03\x04" or start[:1] == b"\x80":
        return _unwrap(_read_torch(path, device), path)
    raise FormatError(
        f"{path}: neither a safetensors nor a PyTorch weight file, or it is cut off; fetch it again"
    )


def _is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(9)
    return len(start) == 9 and start[8:] == b"{" and start[:4] != b"PK\x03\x04"


def _read_safetensors(path: Path, device: str) -> State:
    try:
        return _read_sizes(path) if device == "meta" else dict(safetensors.torch.load_file(path))
    except (safetensors.SafetensorError, ValueError, KeyError, OSError) as error:
        raise FormatError(f"{path}: damaged or cut off ({error}); fetch it again") from error


def _read_sizes(path: Path) -> State:
    """What the header of a safetensors file tells; opening it compares the header with the file's length."""
    with safetensors.safe_open(path, "pt") as file:
        told = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - it is no dictionary
        return {key: torch.empty(part.get_shape(), dtype=_kind(part.get_dtype()), device="meta")
                for key, part in told.items()}  # fmt: skip


def _kind(dtype: str) -> torch.dtype:
    """float32 for all that is floating point, which is all that matters of it."""
    return torch.float32 if dtype.startswith(("F", "BF")) else torch.int64


def _read_torch(path: Path, device: str) -> object:
    """PyTorch's own format through its restricted unpickler, which builds tensors and containers only."""
    try:
        # By handle, not by name: torch lets a suffix decide which reader it trusts.
        with path.open("rb") as file:
            return torch.load(file, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        raise FormatError(f"{path}: holds more than tensors; refused, nothing in it was run") from error
    except _STUMBLES as error:
        raise FormatError(f"{path}: damaged or cut off ({_first_line(error)}); fetch it again") from error


def _unwrap(content: object, path: Path) -> State:
    """Checkpoints of training loops keep the weights under a name of their own."""
    for name in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
    if not isinstance(content, dict) or not content:
        raise FormatError(f"{path}: holds no named tensors; it is not a checkpoint of a network")
    strange = [
        str(key) for key, value in content.items() if not (isinstance(key, str) and isinstance(value, Tensor))
    ]
    if strange:
        raise FormatError(f"{path}: these entries are no tensors: {name_some(strange)}")
    return dict(content)


def plain_names(state: Mapping[str, Tensor]) -> State:
    """DA3's names without the wrappers' prefixes, old names replaced, parts that we do not have left out."""
    names = {key: re.sub(r"^((module|model)\.)+", "", key) for key in state}
    # Old files hold an unused camera token beside the one that counts.
    stale = {n.removesuffix("_extra") for n in names.values() if n.endswith(".camera_token_extra")}
    plain: State = {}
    for key, name in names.items():
        if name in stale:
            continue
        for old, new in _RENAMED:
            name = re.sub(old, new, name)
        if name in plain:
            raise FormatError(f"the weights {key!r} and another entry both stand for {name!r}")
        if not name.startswith(IGNORED):
            plain[name] = state[key]
    return plain


def with_shared_norm(state: State) -> State:
    """The ray branch's one layer norm at all four places that name it; files keep only the first."""
    filled = dict(state)
    for key, value in state.items():
        if match := _SHARED_NORM.match(key):
            for level in (1, 2, 3):
                filled.setdefault(f"{match[1]}{level}{match[2]}", value)
    return filled


def load_strictly(network: nn.Module, state: State, what: str) -> None:
    """Puts the weights in place, in float32; what is missing, left over, misshapen or not finite is named."""
    expected = network.state_dict()
    _refuse(f"{what}: weights are missing", expected.keys() - state.keys())
    _refuse(f"{what}: weights that this network does not have", state.keys() - expected.keys())
    _refuse(
        f"{what}: weights of another size",
        (
            f"{k} {list(state[k].shape)} instead of {list(v.shape)}"
            for k, v in expected.items()
            if state[k].shape != v.shape
        ),
    )
    _refuse(
        f"{what}: weights that are not floating point",
        (k for k, v in state.items() if not v.is_floating_point()),
    )
    _refuse(
        f"{what}: weights that are not finite",
        (k for k, v in state.items() if not v.is_meta and not bool(v.isfinite().all())),
    )
    network.load_state_dict(
        {key: value.to(torch.float32, copy=True) for key, value in state.items()}, strict=True, assign=True
    )


def _refuse(problem: str, names: Iterable[str]) -> None:
    if listed := sorted(names):
        raise FormatError(f"{problem}: {name_some(listed)}")


def name_some(names: list[str], most: int = 6) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an error that says where it is not."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON ({_first_line(error)})") from error
    if not isinstance(content, dict):
        raise FormatError(f"{path}: must hold a JSON object")
    return content


def sha256(path: Path) -> str:
    """Digest of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
