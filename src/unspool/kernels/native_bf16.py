"""The native kernels with products in bf16; everything else is float32, as in `native`."""

from functools import partial

from unspool.kernels import native
from unspool.kernels.bf16 import BLOCK as BLOCK
from unspool.kernels.native import DTYPE as DTYPE
from unspool.kernels.native import activate as activate
from unspool.kernels.native import column_sum as column_sum
from unspool.kernels.native import dropout_mask as dropout_mask
from unspool.kernels.native import gather as gather
from unspool.kernels.native import log_softmax_rows as log_softmax_rows
from unspool.kernels.native import scale_rows as scale_rows
from unspool.kernels.native import scatter_add as scatter_add
from unspool.kernels.native import shift_rows as shift_rows
from unspool.kernels.native import slope as slope
from unspool.kernels.native import zeros as zeros

pack = partial(native.pack, bf16=True)
matmul = partial(native.matmul, bf16=True)
sum_over_time = partial(native.sum_over_time, bf16=True)
window_forward = partial(native.window_forward, bf16=True)
window_backward = partial(native.window_backward, bf16=True)
softmax_cross_entropy = partial(native.softmax_cross_entropy, bf16=True)
