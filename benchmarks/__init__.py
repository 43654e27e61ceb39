"""Timings, by ``make bench``. Nothing here passes or fails; read the ratios, the machine may be noisy."""
