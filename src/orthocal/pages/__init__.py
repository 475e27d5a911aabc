"""How anything is shown: tables, pictures, pages."""
