"""What the computer gives and may refuse: threads, a place for compiled code."""
