"""Tasks out, results in, nothing lost: processes, threads, programs, servers, clusters, and files that keep results."""

from .program import Program as Program
