"""What runs inside the process of a Python model."""
