"""Results on disk, and files of older versions."""
