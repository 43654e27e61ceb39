"""A rain gauge for trials: each day has the same rain whenever it is asked for."""

from hashlib import sha256

from agents.basic_agent import BasicAgent


class RainGaugeAgent(BasicAgent):
    def __init__(self):
        self.name = "RainGauge"
        self.metadata = {
            "name": self.name,
            "description": "Reads the rain gauge of a day.",
            "parameters": {
                "type": "object",
                "properties": {"day": {"type": "string", "description": "Which day."}},
                "required": ["day"],
            },
            "idempotent": True,
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        return f"{kwargs['day']}: {sha256(kwargs['day'].encode()).digest()[0] % 12} mm"
