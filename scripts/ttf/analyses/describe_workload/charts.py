from ttf.charts import population, workload

CHARTS = workload.CHARTS | population.CHARTS
