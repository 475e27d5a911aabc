"""The simulator f(x, theta): the user's function, its gradient, and an emulator in its place."""
