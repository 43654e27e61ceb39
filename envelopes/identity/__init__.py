"""Identity: keys, certificates, signatures, tokens, capabilities, pairing proof, log anchors."""
