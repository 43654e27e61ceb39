"""Tenants: one workspace with its brainstem, workers and services; agent administration."""
