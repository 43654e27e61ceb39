"""Phones: pairing by a QR code, registered devices, and sessions over a WebRTC data channel or a WebSocket."""
