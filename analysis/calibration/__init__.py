"""Do our tests keep their level, and what power have they? Simulated studies with a planted effect."""
