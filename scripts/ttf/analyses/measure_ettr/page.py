from ttf.report.ettr import measured

tables = measured
