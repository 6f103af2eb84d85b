import { expect, test } from 'bun:test'
import { createControlPlaneMetrics } from './metrics.ts'

test('answers are counted by the pattern of their route, whatever was asked for', async () => {
  const metrics = createControlPlaneMetrics()
  metrics.answered({ method: 'GET', path: '/v1/tokens/{id}', status: 200, seconds: 0.002 })
  metrics.answered({ method: 'GET', path: null, status: 404, seconds: 0.001 })
  metrics.answered({ method: 'BREW', path: null, status: 404, seconds: 0.001 })
  metrics.ingested(7)
  metrics.propagated(0.03)
  metrics.connectedLanes(2)
  const text = await metrics.text()
  expect(text).toContain('gatehouse_http_requests_total{method="GET",route="/v1/tokens/{id}",status="200"} 1')
  expect(text).toContain('gatehouse_http_requests_total{method="other",route="none",status="404"} 1')
  expect(text).toContain('gatehouse_events_ingested_total 7')
  expect(text).toContain('gatehouse_propagation_seconds_count 1')
  expect(text).toContain('gatehouse_connected_lanes 2')
})

test('two of them count apart', async () => {
  createControlPlaneMetrics().ingested(1)
  expect(await createControlPlaneMetrics().text()).toContain('gatehouse_events_ingested_total 0')
})
