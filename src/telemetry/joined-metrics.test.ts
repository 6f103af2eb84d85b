import { expect, test } from 'bun:test'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { joinedMetrics, processMetrics } from './joined-metrics.ts'

/** As it arrives from another process. */
const metricsOf = async (registry: Registry) =>
  processMetrics.parse(JSON.parse(JSON.stringify(await registry.getMetricsAsJSON())))

test('joins the metrics of several workers: each metric once, each sample with its worker', async () => {
  const [one, other] = [new Registry(), new Registry()]
  const counter = { name: 'a_total', help: 'Some a', labelNames: ['kind'] as const }
  new Counter({ ...counter, registers: [one] }).inc({ kind: 'x' }, 2)
  new Counter({ ...counter, registers: [other] }).inc({ kind: 'x' }, 3)
  new Gauge({ name: 'b', help: 'Some b', registers: [one] }).set(1)
  const duration = { name: 'c', help: 'Some c', labelNames: ['family'] as const, buckets: [1] }
  new Histogram({ ...duration, registers: [other] }).observe({ family: 'chat' }, 0.5)
  const text = await joinedMetrics([
    ['0', await metricsOf(one)],
    ['1', await metricsOf(other)],
    ['2', []],
  ])
  expect(text.split('\n').filter((line) => line !== '')).toEqual([
    '# HELP a_total Some a',
    '# TYPE a_total counter',
    'a_total{worker="0",kind="x"} 2',
    'a_total{worker="1",kind="x"} 3',
    '# HELP b Some b',
    '# TYPE b gauge',
    'b{worker="0"} 1',
    '# HELP c Some c',
    '# TYPE c histogram',
    'c_bucket{worker="1",le="1",family="chat"} 1',
    'c_bucket{worker="1",le="+Inf",family="chat"} 1',
    'c_sum{worker="1",family="chat"} 0.5',
    'c_count{worker="1",family="chat"} 1',
  ])
})
