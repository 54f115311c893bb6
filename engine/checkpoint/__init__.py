"""From a folder or a hub snapshot to configuration, tensors and the place of the MTP head."""
