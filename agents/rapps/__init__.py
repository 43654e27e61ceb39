"""Rapplications (RAPP v1 §18.8): reading their bundles, and the three that come with rappd."""
