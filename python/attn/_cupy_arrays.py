"""CuPy arrays: described by DLPack, allocated on CuPy's own terms."""

from __future__ import annotations

from typing import Any, Optional

from ._arrays import Library


class CupyLibrary(Library):
    """CuPy, which the caller has imported."""

    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy

    def stream_of(self, array: Any) -> int:
        with array.device:  # current streams are kept for each GPU
            return int(self.cupy.cuda.get_current_stream().ptr)

    def empty(self, like: Any, sizes: tuple[int, ...],
              strides: tuple[int, ...], dtype: Optional[str],
              stream: int, name: str) -> Any:
        element = self.cupy.float32 if dtype == "f32" else like.dtype
        order = sorted(range(len(sizes)), key=lambda dim: -strides[dim])
        dense = tuple(sizes[dim] for dim in order)
        back = [order.index(dim) for dim in range(len(sizes))]
        # Rows may be padded; what is made has no other gaps.
        pitch = max(dense[-1], strides[order[-2]] if len(sizes) > 1 else 0)

        def make() -> Any:
            made = self.cupy.empty((*dense[:-1], pitch), element)
            if pitch != dense[-1]:
                made = made[..., :dense[-1]]
            return made.transpose(back)

        with like.device:
            if stream == self.stream_of(like):
                return make()
            with self.cupy.cuda.ExternalStream(stream):
                return make()
