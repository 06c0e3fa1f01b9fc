"""A simulated device that is not the host. The CPU computes the numbers, but their tensors report that they are elsewhere, and an
operation with a tensor of the host fails, like on a GPU.

    with elsewhere.there():
        a = torch.ones(3).to(elsewhere.DEVICE)
        a + torch.ones(3)  # AssertionError
        with elsewhere.sealed():
            a.sum().item()  # AssertionError: read back to the host, which no graph of kernels can record
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

DEVICE = "elsewhere"
_setup_privateuseone_for_python_backend(DEVICE)

# Operations that reveal a value, or a size that depends on values, to the host.
_READS = {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "unique_dim", "_unique2"}
_is_sealed = False
_noted: tuple[dict[int, Any], dict[int, Any]] | None = None  # memory that operations read and allocate, while it is noted
crossings: list[str] = []  # operations that copied between the device and the host, or read a value back


class _There(Tensor):
    """A tensor on the device; `here` holds its numbers."""

    @staticmethod
    def __new__(cls, here: Tensor) -> _There:
        layout = {"strides": here.stride(), "storage_offset": here.storage_offset(), "dtype": here.dtype}
        made = Tensor._make_wrapper_subclass(cls, here.shape, device=torch.device(DEVICE, 0), **layout)
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _compute(operation, args, kwargs or {})

    # Some functions of the library access memory directly.
    def numpy(self, *, force: bool = False) -> Any:
        assert force, "numpy of a tensor that is not the host's"
        return self.detach().cpu().numpy()

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()


def _compute(operation: Any, args: tuple, kwargs: dict) -> Any:
    name = operation.overloadpacket.__name__
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, _There)]
    device = kwargs.get("device")
    goes_there = bool(there) if device is None else torch.device(device).type == DEVICE
    crosses = bool(tensors) and (goes_there != bool(there) or 0 < len(there) < len(tensors))
    # A GPU also accepts indices on the host.
    assert not crosses or name in ("_to_copy", "copy_", "index"), f"{operation} meets tensors of the device and of the host"
    masks = [tensor for tensor in tensors[1:] if tensor.dtype == torch.bool] if name.startswith("index") else []
    reads = bool(there) and (name in _READS or bool(masks))
    if _is_sealed:
        assert not crosses, f"{operation} copies between the device and the host"
        assert not reads, f"{operation} reads values back to the host"
        _assert_ordered(name, args)
    crossings.extend([name] * (crosses or reads))
    if device is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    args_here, kwargs_here = tree_map_only(_There, lambda tensor: tensor.here, (args, kwargs))
    result = operation(*args_here, **kwargs_here)
    if _noted is not None:
        read, made = _noted
        read |= _memory([tensor.here for tensor in there])
        made |= {key: of for key, of in _memory(tree_leaves(result)).items() if key not in read}
    if name == "copy_":
        return args[0]
    if not goes_there:
        return result
    own = {id(tensor.here): tensor for tensor in there}  # in-place operations return their argument
    return tree_map_only(Tensor, lambda tensor: own[id(tensor)] if id(tensor) in own else _There(tensor), result)


def _memory(values: list[Any]) -> dict[int, Any]:
    """The memory of tensors, by its identity."""
    storages = [value.untyped_storage() for value in values if isinstance(value, Tensor)]
    return {storage._cdata: storage for storage in storages}


def _assert_ordered(name: str, args: tuple) -> None:
    """On CUDA these operations add values with the same index in any order, so no two indices may be equal."""
    if name.rstrip("_") not in ("index_add", "scatter_add"):
        return
    index = args[2].here
    axis = args[1] if index.ndim > 1 else 0
    assert index.sort(axis).values.diff(dim=axis).all(), f"{name} adds several numbers to the same place"


class _Operations(TorchDispatchMode):
    """Intercepts operations, including those that create tensors."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _compute(operation, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Intercepts torch.tensor, whose copies are not visible as operations."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.tensor and (device := kwargs.pop("device", None)) is not None:
            return torch.tensor(*args, **kwargs).to(device)
        return function(*args, **kwargs)


@contextmanager
def there() -> Iterator[None]:
    """A context in which the device exists."""
    with _Functions(), _Operations():
        yield


@contextmanager
def sealed() -> Iterator[None]:
    """A context in which copies to and from the device, and sums without a fixed order, raise errors."""
    global _is_sealed
    _is_sealed = True
    try:
        yield
    finally:
        _is_sealed = False


@contextmanager
def noted() -> Iterator[list[weakref.ref]]:
    """A context whose list receives, at its end, the memory that was read but not allocated in it: what a graph would go on
    reading if the operations were recorded."""
    global _noted
    found: list[weakref.ref] = []
    _noted = read, made = {}, {}
    try:
        yield found
    finally:
        _noted = None
        found += [weakref.ref(storage) for key, storage in read.items() if key not in made]


def moved(split: Any) -> Any:
    """A member of a split task with its tensors on the device."""
    split = copy.copy(split)
    split.device = DEVICE
    for name, value in vars(split).items():
        setattr(split, name, tree_map_only(Tensor, lambda tensor: tensor.to(DEVICE), value))
    return split
