"""The temperature where this machine stands."""

from pathlib import Path

from agents.basic_agent import BasicAgent


class ThermometerAgent(BasicAgent):
    def __init__(self):
        self.name = "Thermometer"
        self.metadata = {
            "name": self.name,
            "description": "Measures how warm it is here, in degrees Celsius.",
            "parameters": {"type": "object", "properties": {}, "required": []},
            "idempotent": True,
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        try:
            degrees = int(Path("/sys/class/thermal/thermal_zone0/temp").read_text()) / 1000
        except (OSError, ValueError):
            return "18.4 °C, or so: there is no sensor here"
        return f"{degrees:.1f} °C"
