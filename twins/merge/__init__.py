"""Dream Catcher: two lives of one being become one again, and what contradicts is kept aside, never lost."""
