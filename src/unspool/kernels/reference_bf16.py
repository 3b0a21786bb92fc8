"""The reference kernels with products in bf16, to the same bits as the native ones; everything else is float64, as in `reference`."""

from functools import partial

from unspool.kernels import reference
from unspool.kernels.bf16 import BLOCK as BLOCK
from unspool.kernels.reference import DTYPE as DTYPE
from unspool.kernels.reference import activate as activate
from unspool.kernels.reference import column_sum as column_sum
from unspool.kernels.reference import dropout_mask as dropout_mask
from unspool.kernels.reference import gather as gather
from unspool.kernels.reference import log_softmax_rows as log_softmax_rows
from unspool.kernels.reference import scale_rows as scale_rows
from unspool.kernels.reference import scatter_add as scatter_add
from unspool.kernels.reference import shift_rows as shift_rows
from unspool.kernels.reference import slope as slope
from unspool.kernels.reference import zeros as zeros

pack = partial(reference.pack, bf16=True)
matmul = partial(reference.matmul, bf16=True)
sum_over_time = partial(reference.sum_over_time, bf16=True)
window_forward = partial(reference.window_forward, bf16=True)
window_backward = partial(reference.window_backward, bf16=True)
softmax_cross_entropy = partial(reference.softmax_cross_entropy, bf16=True)
