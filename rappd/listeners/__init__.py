"""HTTP listeners and their routes: loopback, federation, legacy, and a port for each booted twin."""
