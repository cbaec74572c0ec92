"""Write to databases through JDBC."""
