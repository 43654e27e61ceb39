"""Timers: reminders, and sentences that are asked at set times."""
