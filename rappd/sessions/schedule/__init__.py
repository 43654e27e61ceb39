"""Work at set times: rules for moments, and one durable timer for everything that is scheduled."""
