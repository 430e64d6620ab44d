"""Networks: their interface, the architectures and the network files. This package never sees a board."""
