"""CUDA devices: the driver, transfers between host and device, and compiled kernels."""
