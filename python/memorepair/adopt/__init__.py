"""Adopting another store's ids, digests and source columns: `memorepair adopt`.

rows.py reads and checks the file, adoption.py compares it with the store and writes what is new.
"""

from memorepair.adopt.adoption import Adopted, Served, adopt, count_served
from memorepair.adopt.rows import Columns

__all__ = ["Adopted", "Columns", "Served", "adopt", "count_served"]
