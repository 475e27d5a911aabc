"""The studies that compare methods on the paper's test problems, our figures beside the paper's."""
