"""A served plan on paper: questions, queues and lost nodes, drawn from measured seconds."""
