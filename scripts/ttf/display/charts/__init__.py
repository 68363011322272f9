"""Chart builders: a frame in, an Altair chart out."""
