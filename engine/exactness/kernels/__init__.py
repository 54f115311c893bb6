"""Interchangeable ways to run the products of a verify block.

Each computes [K, in] x [out, in] -> [K, out] on a linear module that the target owns. What they share is
the promise that they may be entered for one forward and left again without a trace.
"""

from engine.exactness.kernels.base import Attention, MatmulKernel, Scope
from engine.exactness.kernels.forced_qmv import ForcedQmv
from engine.exactness.kernels.gather import Gather
from engine.exactness.kernels.one_row import OneRow
from engine.exactness.kernels.qmv_rows import QmvRows
from engine.exactness.kernels.stock import Stock

__all__ = ["Attention", "ForcedQmv", "Gather", "MatmulKernel", "OneRow", "QmvRows", "Scope", "Stock"]
