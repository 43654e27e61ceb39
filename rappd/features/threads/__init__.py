"""The event log as its owner sees it: its anchors, and who keeps them."""
