/** The lists of metrics and of attributes say exactly what there is. */
import { expect, test } from 'bun:test'
import { createMeter } from '../gateway/accounting/metrics.ts'
import { createTestWorker, testMemory } from '../gateway/testing/worker.ts'
import { createControlPlaneMetrics } from './metrics.ts'
import { attribute } from './span.ts'
import { noTracer } from './tracer.ts'

const documented = async (section: string): Promise<Record<string, string>> => {
  const text = await Bun.file(new URL('../handbook/reference/metrics.md', import.meta.url)).text()
  const rows = (text.split(`## ${section}`)[1] ?? '').split('## ')[0]?.matchAll(/^\| `(\w+)` \| (\w+) \|/gm) ?? []
  return Object.fromEntries([...rows].map(([, name = '', type = '']) => [name, type]))
}

const told = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
      .map(([, name = '', type = '']) => [name, type] as const)
      .filter(([name]) => !/^gatehouse_(process|nodejs)_/.test(name)),
  )

test('the handbook lists each metric of the gateway with its type', async () => {
  const mcp = { sessions: 0, unsolicited: 0, evicted: 0 }
  const { counters: worker } = createTestWorker()
  const readings = {
    inFlight: 0,
    memory: testMemory(),
    worker,
    openCircuits: 0,
    cachedBytes: 0,
    targets: [],
    spans: noTracer.counters,
    mcp,
  }
  expect(told(await createMeter().read(readings).metrics())).toEqual(await documented('The gateway'))
})

test('the handbook lists each metric of the control plane with its type', async () => {
  const metrics = createControlPlaneMetrics({
    connectedWorkers: async () => 0,
    stateReads: () => ({ ageSeconds: 1, stalls: 2, stallSeconds: 15 }),
    doctorReport: async () => ({ examinedAt: 1000, findings: [{ check: 'space', level: 'warn' }] }),
    verifyReport: async () => ({ examinedAt: null, findings: [] }),
    sinks: async () => [],
    alerts: async () => ({ open: [], channels: [] }),
    unmoved: async () => ({ records: 3, seconds: 7 }),
  })
  expect(told(await metrics.text())).toEqual(await documented('The control plane'))
})

test('spans.md lists each attribute of spans', async () => {
  const text = await Bun.file(new URL('spans.md', import.meta.url)).text()
  const named = [...text.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name = '']) => name)
  expect(named.toSorted()).toEqual(Object.values(attribute).toSorted())
})
