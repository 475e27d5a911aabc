"""The fit of a galaxy, stage by stage: what it starts from, its runs, tables, figures and page."""
