"""Every foreign file, reader and writer side by side; foreign names and conventions live and die here."""
