"""The loopback listener: the RAPP surface, the page and services on 127.0.0.1, and the control socket."""
