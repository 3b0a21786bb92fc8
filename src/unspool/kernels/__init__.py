"""The arithmetic: plain NumPy twins (reference) and the native kernels (ops)."""
