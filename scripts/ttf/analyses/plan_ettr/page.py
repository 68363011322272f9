from ttf.report.ettr import planned

tables = planned
