"""Files and memories of agents, below one data directory that nothing given as a name leads out of."""
