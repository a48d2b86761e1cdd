"""Compiled CPU kernels: small C files, built at first use by the machine's own compiler, loaded with ctypes."""
