import { expect, test } from 'bun:test'
import { createControlPlaneMetrics } from './metrics.ts'

const readings = {
  connectedWorkers: async () => 2,
  stateReads: () => ({ ageSeconds: 1, stalls: 2, stallSeconds: 15 }),
  doctorReport: async () => ({ examinedAt: 1000, findings: [{ check: 'space', level: 'warn' }] }),
  verifyReport: async () => ({ examinedAt: 2000, findings: [{ what: 'event.altered' }, { what: 'event.altered' }] }),
  sinks: async () => [],
  unmoved: async () => ({ records: 3, seconds: 7 }),
  alerts: async () => ({
    open: [{ severity: 'critical', count: 3 }],
    channels: [{ name: 'On call', kind: 'slack', failing: true, waiting: 4 }],
  }),
}

test('counts answers by the pattern of their route, with unknown paths and methods as one each', async () => {
  const metrics = createControlPlaneMetrics(readings)
  metrics.answered({ method: 'GET', path: '/v1/tokens/{id}', status: 200, seconds: 0.002 })
  metrics.answered({ method: 'GET', path: null, status: 404, seconds: 0.001 })
  metrics.answered({ method: 'BREW', path: null, status: 404, seconds: 0.001 })
  const inner = { event_id: 'id', verdict: 'allow' as const, reason_code: 'ok' }
  metrics.ingested([
    { event_type: 'gateway.request.outcome', attempts: [inner], decisions: [inner, inner] },
    { event_type: 'auth.refused' },
  ])
  metrics.propagated(0.03)
  const text = await metrics.text()
  expect(text).toContain('gatehouse_http_requests_total{method="GET",route="/v1/tokens/{id}",status="200"} 1')
  expect(text).toContain('gatehouse_http_requests_total{method="other",route="none",status="404"} 1')
  expect(text).toContain('gatehouse_events_ingested_total{type="gateway.request.outcome"} 1')
  expect(text).toContain('gatehouse_events_ingested_total{type="gateway.provider.attempt"} 1')
  expect(text).toContain('gatehouse_events_ingested_total{type="decision"} 2')
  expect(text).toContain('gatehouse_events_ingested_total{type="auth.refused"} 1')
  expect(text).toContain(
    'gatehouse_propagation_seconds_bucket{le="0.025"} 0\ngatehouse_propagation_seconds_bucket{le="0.05"} 1\n',
  )
  expect(text).toContain('gatehouse_propagation_seconds_count 1')
  expect(text).toContain('gatehouse_connected_workers 2')
  expect(text).toContain('gatehouse_doctor_findings{check="space",level="warn"} 1')
  expect(text).toContain('gatehouse_clickhouse_lag_records 3\n')
  expect(text).toContain('gatehouse_clickhouse_lag_seconds 7\n')
  expect(text).toContain('gatehouse_doctor_examined_timestamp_seconds 1\n')
  expect(text).toContain('gatehouse_verify_findings{what="event.altered"} 2')
  expect(text).toContain('gatehouse_verify_examined_timestamp_seconds 2\n')
  expect(text).toContain('gatehouse_alerts_open{severity="critical"} 3')
  expect(text).toContain('gatehouse_alert_channel_failing{channel="On call",kind="slack"} 1')
  expect(text).toContain('gatehouse_alert_notices_waiting{channel="On call",kind="slack"} 4')
})

test('two instances of the metrics count separately', async () => {
  const one = createControlPlaneMetrics(readings)
  one.ingested([{ event_type: 'decision' }])
  expect(await createControlPlaneMetrics(readings).text()).not.toContain('type="decision"')
})
