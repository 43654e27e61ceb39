"""ZIP archives, as eggs use them: read with distrust, written so that the same input gives the same bytes."""
