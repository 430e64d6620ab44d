"""Networks: one interface, the architectures, and the files they live in. Never sees a board."""
