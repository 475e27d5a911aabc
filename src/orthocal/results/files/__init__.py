"""Files of results, also those of older versions, become posteriors."""
