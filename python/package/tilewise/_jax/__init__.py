"""JAX's functions, traces, devices and arrays; what leans on its private names is in `internals`."""
