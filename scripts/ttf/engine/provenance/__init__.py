"""Where products come from: the manifest, whether it still holds, the chain back to the raw files."""
