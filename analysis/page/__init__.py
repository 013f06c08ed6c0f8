"""Reports: their tables, figures, sentences and pages, and the reports that fit any study."""
