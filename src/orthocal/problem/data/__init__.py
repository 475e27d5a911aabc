"""Field data and what belongs to their rows: labels, transforms, errors of the inputs, outputs without inputs."""
