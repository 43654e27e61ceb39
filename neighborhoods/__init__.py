"""Floor 4, other machines: discovery, peers, trust, delivery, carriers, snapshot, hatch, fleet."""
