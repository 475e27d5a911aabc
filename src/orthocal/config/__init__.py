"""Files become objects: problems and campaigns in TOML."""
