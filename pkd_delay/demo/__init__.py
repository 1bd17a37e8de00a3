"""The demo: an autoscaler with late metrics."""
