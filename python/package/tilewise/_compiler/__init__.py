"""The TPU's compiler, in a process of its own: programs, its answers, and their cache."""
