"""Where a calibration stands, in memory and on disk, so that it can go on."""
