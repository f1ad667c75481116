"""Programs of public repositories in the block."""
