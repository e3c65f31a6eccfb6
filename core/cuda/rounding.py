"""Operations of single precision in CUDA kernels, each rounded by itself, so that they give what the host's give.

A compiler for devices makes one instruction of a product and a sum, which is rounded once; these are never joined.
Those that end in ``_flushed`` make 0 of results smaller than the smallest normal number, as the host does where
subnormal numbers are flushed (``core/subnormals.py``), if no operand is subnormal.
"""

from typing import Any

import numpy as np
from numba import types

from ..kernels.packed16 import SIMULATED

_SMALLEST = np.finfo(np.float32).tiny

if not SIMULATED:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic as _intrinsic

    intrinsic: Any = _intrinsic

    def _operation(name: str) -> Any:
        """A device function of two numbers by an instruction of PTX."""

        def typed(*_: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                shape = ir.FunctionType(ir.FloatType(), [ir.FloatType()] * 2)
                return builder.call(ir.InlineAsm(shape, f"{name} $0, $1, $2;", "=f,f,f", side_effect=False), values)

            return types.float32(types.float32, types.float32), build

        return intrinsic(lambda typing_context, a, b: typed())

    plus, times, over = (_operation(f"{name}.rn.f32") for name in ("add", "mul", "div"))
    plus_flushed, times_flushed, over_flushed = (_operation(f"{name}.rn.ftz.f32") for name in ("add", "mul", "div"))

else:

    def _flushed(value):
        return value if abs(value) >= _SMALLEST or value != value else np.float32(0.0)

    def plus(a, b):
        return np.float32(a) + np.float32(b)

    def times(a, b):
        return np.float32(a) * np.float32(b)

    def over(a, b):
        return np.float32(a) / np.float32(b)

    def plus_flushed(a, b):
        return _flushed(plus(a, b))

    def times_flushed(a, b):
        return _flushed(times(a, b))

    def over_flushed(a, b):
        return _flushed(over(a, b))
