"""Write a finished run into its folder, and open it again."""
