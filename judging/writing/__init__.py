"""The studies that write: `malibu-derive`, `malibu-respond` and `topics`. `study` has what they share."""
