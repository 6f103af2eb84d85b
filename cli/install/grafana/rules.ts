/**
 * Rules for Prometheus: an SLO of requests that do not fail, with alerts on how fast its error budget is spent (the
 * windows of Google's SRE workbook, chapter 5), and alerts on what needs a person.
 */

/** The share of requests that may fail within 30 days. */
const objective = 0.999

interface Alert {
  alert: string
  expr: string
  /** How long it must hold first. */
  for: string
  severity: 'page' | 'ticket'
  summary: string
}

const failed = (window: string) => ({
  record: `gatehouse:requests_failed:ratio_rate${window}`,
  expr: `sum(rate(gatehouse_requests_total{status="5xx"}[${window}])) / sum(rate(gatehouse_requests_total[${window}]))`,
})

const burns = (factor: number, long: string, short: string): string => {
  const bound = `${factor} * (1 - ${objective})`
  const above = (window: string) => `gatehouse:requests_failed:ratio_rate${window} > ${bound}`
  return `${above(long)} and ${above(short)}`
}

const alerts: readonly Alert[] = [
  {
    alert: 'GatehouseErrorBudgetBurnsFast',
    expr: burns(14.4, '1h', '5m'),
    ...{ for: '2m', severity: 'page' },
    summary: 'Requests fail so often that the error budget of 30 days is spent in two days',
  },
  {
    alert: 'GatehouseErrorBudgetBurns',
    expr: burns(6, '6h', '30m'),
    ...{ for: '15m', severity: 'ticket' },
    summary: 'Requests fail so often that the error budget of 30 days is spent in five days',
  },
  {
    alert: 'GatehouseNoGatewayConnected',
    expr: 'max(gatehouse_connected_workers) == 0',
    ...{ for: '5m', severity: 'page' },
    summary: 'No gateway is connected to the control plane',
  },
  {
    alert: 'GatehouseStateStale',
    expr: 'gatehouse_state_staleness_seconds > 60',
    ...{ for: '2m', severity: 'page' },
    summary:
      'A gateway has not heard from the primary for a minute; it refuses requests after SERVICE_MAX_STALENESS_SECONDS',
  },
  {
    alert: 'GatehouseStreamDisconnected',
    expr: 'gatehouse_stream_connected == 0',
    ...{ for: '5m', severity: 'ticket' },
    summary: 'A gateway has no change stream: changes and revocations reach it late',
  },
  {
    alert: 'GatehouseOutboxGrows',
    expr: 'gatehouse_outbox_unacknowledged_events > 10000',
    ...{ for: '10m', severity: 'ticket' },
    summary: 'A gateway has events that the control plane does not take; a full outbox refuses requests',
  },
  {
    alert: 'GatehouseRevocationsPending',
    expr: 'gatehouse_pending_revocations > 0',
    ...{ for: '15m', severity: 'ticket' },
    summary: 'Revocations are not in the state yet',
  },
  {
    alert: 'GatehouseCircuitOpen',
    expr: 'max by (provider, model) (gatehouse_target_circuit_open) > 0',
    ...{ for: '5m', severity: 'ticket' },
    summary: 'Calls to {{ $labels.provider }} {{ $labels.model }} are skipped, because they failed',
  },
  {
    alert: 'GatehouseUpstreamFails',
    expr: 'max by (provider, model) (gatehouse_target_error_ratio) > 0.5',
    ...{ for: '10m', severity: 'ticket' },
    summary: 'More than half of the last calls to {{ $labels.provider }} {{ $labels.model }} failed',
  },
  {
    alert: 'GatehouseLimitsNotAsked',
    expr: 'sum(rate(gatehouse_refusals_total{code="usage_authority_unavailable"}[5m])) > 0',
    ...{ for: '5m', severity: 'page' },
    summary: 'Requests are refused because the control plane does not answer about limits',
  },
  {
    alert: 'GatehousePoliciesFail',
    expr: 'sum(increase(gatehouse_policy_errors_total[15m])) > 0',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'Policies could not decide',
  },
  {
    alert: 'GatehouseUnpriced',
    expr: 'sum(increase(gatehouse_unpriced_total[1h])) > 0',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'Answers had a model without a price: their spend is not counted',
  },
  {
    alert: 'GatehouseMemoryShort',
    expr: 'gatehouse_memory_waiting > 0',
    ...{ for: '5m', severity: 'ticket' },
    summary: 'Requests wait for memory: give the gateway more, or run more gateways',
  },
  {
    alert: 'GatehouseStateStalls',
    expr: 'sum(increase(gatehouse_state_stalls_total[15m])) > 0',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'The state database did not answer for more than three seconds',
  },
  {
    alert: 'GatehouseDoctorFails',
    expr: 'max by (check) (gatehouse_doctor_findings{level="fail"}) > 0',
    ...{ for: '2m', severity: 'page' },
    summary: 'Doctor found a failure ({{ $labels.check }}): gatehouse doctor says what to do',
  },
  {
    alert: 'GatehouseDoctorWarns',
    expr: 'max by (check) (gatehouse_doctor_findings{level="warn"}) > 0',
    ...{ for: '1h', severity: 'ticket' },
    summary: 'Doctor warns for an hour ({{ $labels.check }}): gatehouse doctor says what to do',
  },
  {
    alert: 'GatehouseDoctorSilent',
    expr: 'time() - max(gatehouse_doctor_examined_timestamp_seconds) > 600',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'No control plane has examined the installation for ten minutes',
  },
  {
    alert: 'GatehouseSinkLags',
    expr: 'max by (sink, kind) (gatehouse_sink_lag_seconds) > 300',
    ...{ for: '5m', severity: 'ticket' },
    summary: 'The sink {{ $labels.sink }} ({{ $labels.kind }}) is more than five minutes behind',
  },
  {
    alert: 'GatehouseSinkFails',
    expr: 'max by (sink, kind) (gatehouse_sink_failing) > 0',
    ...{ for: '10m', severity: 'ticket' },
    summary:
      'The receiver of the sink {{ $labels.sink }} ({{ $labels.kind }}) takes nothing: gatehouse sink list says why',
  },
  {
    alert: 'GatehouseSinkRefuses',
    expr: 'max by (sink) (delta(gatehouse_sink_refused[1h])) > 0',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'The receiver of the sink {{ $labels.sink }} refused messages, which it will not get',
  },
  {
    alert: 'GatehouseSinkLost',
    expr: 'max by (sink) (delta(gatehouse_sink_lost_records[1h])) > 0',
    ...{ for: '0m', severity: 'page' },
    summary: 'Retention removed records that the sink {{ $labels.sink }} had not got',
  },
  {
    alert: 'GatehouseAlertChannelFails',
    expr: 'max by (channel, kind) (gatehouse_alert_channel_failing) > 0',
    ...{ for: '10m', severity: 'ticket' },
    summary:
      'Notices to {{ $labels.channel }} ({{ $labels.kind }}) do not arrive: gatehouse alert-channel list says why',
  },
  {
    alert: 'GatehouseAlertNoticesWait',
    expr: 'max by (channel) (gatehouse_alert_notices_waiting) > 0',
    ...{ for: '30m', severity: 'ticket' },
    summary: 'Notices for {{ $labels.channel }} have waited for half an hour',
  },
  {
    alert: 'GatehouseRecordAltered',
    expr: 'max by (what) (gatehouse_verify_findings) > 0',
    ...{ for: '0m', severity: 'page' },
    summary: 'The event log does not verify ({{ $labels.what }}): gatehouse events verify names what was altered',
  },
  {
    alert: 'GatehouseVerifySilent',
    expr: 'time() - (max(gatehouse_verify_examined_timestamp_seconds) > 0) > 172800',
    ...{ for: '0m', severity: 'ticket' },
    summary: 'No control plane has verified events for two days',
  },
]

export const rules = {
  groups: [
    { name: 'gatehouse-slo', rules: ['5m', '30m', '1h', '6h', '30d'].map(failed) },
    {
      name: 'gatehouse',
      rules: alerts.map(({ summary, severity, ...alert }) => ({
        ...alert,
        labels: { severity },
        annotations: { summary },
      })),
    },
  ],
}
