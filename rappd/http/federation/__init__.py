"""The federation door, TLS 1.3: envelopes of other machines."""
