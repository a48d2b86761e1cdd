"""Why is it slow? Where the time goes, what waits for the device, what the machine could do, and what to change."""
