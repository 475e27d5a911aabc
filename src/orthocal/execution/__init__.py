"""Tasks out, results in, nothing lost: processes, threads, programs, clusters, and files that keep what finished."""

from .program import Program as Program
