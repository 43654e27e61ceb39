"""The federation listener, TLS 1.3: envelopes of other machines."""
