"""The whole job on real agent work: `memorepair demo`, or `memorepair.demo.run()`.

trace.py is the memory and its operators, run.py does and measures, show.py prints.
"""

from memorepair.demo.run import DemoReport, run

__all__ = ["DemoReport", "run"]
