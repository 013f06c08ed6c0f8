"""What every report is made of: tables, figures, pages; and the reports that fit any study."""
