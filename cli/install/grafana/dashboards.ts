/** The dashboards of Grafana: which panels, with which queries. `panel.ts` makes Grafana's JSON of them. */
import type { Dashboard } from './panel.ts'

const rate = (metric: string, by = '', where = ''): string =>
  `sum${by === '' ? '' : ` by (${by})`} (rate(${metric}${where === '' ? '' : `{${where}}`}[$__rate_interval]))`
const quantile = (share: number, metric: string, by: string): string =>
  `histogram_quantile(${share}, sum by (le, ${by}) (rate(${metric}_bucket[$__rate_interval])))`

export const dashboards: readonly Dashboard[] = [
  {
    uid: 'gatehouse-traffic',
    title: 'Gatehouse: traffic and errors',
    panels: [
      { title: 'Requests', unit: 'reqps', queries: [[rate('gatehouse_requests_total', 'verdict'), '{{verdict}}']] },
      {
        title: 'Requests by family',
        unit: 'reqps',
        queries: [[rate('gatehouse_requests_total', 'family'), '{{family}}']],
      },
      {
        title: 'Share of requests that failed',
        unit: 'percentunit',
        queries: [
          [`${rate('gatehouse_requests_total', '', 'status="5xx"')} / ${rate('gatehouse_requests_total')}`, '5xx'],
        ],
      },
      { title: 'Refusals by code', unit: 'reqps', queries: [[rate('gatehouse_refusals_total', 'code'), '{{code}}']] },
      { title: 'Requests in flight', unit: 'short', queries: [['sum(gatehouse_requests_in_flight)', 'in flight']] },
      {
        title: 'Verdicts of policies',
        unit: 'reqps',
        queries: [[rate('gatehouse_policy_verdicts_total', 'kind, verdict'), '{{kind}} {{verdict}}']],
      },
      {
        title: 'Policies that could not decide',
        unit: 'reqps',
        queries: [[rate('gatehouse_policy_errors_total'), 'errors']],
      },
      {
        title: 'Answers from the cache',
        unit: 'reqps',
        queries: [[rate('gatehouse_cache_requests_total', 'result'), '{{result}}']],
      },
    ],
  },
  {
    uid: 'gatehouse-latency',
    title: 'Gatehouse: latency and providers',
    panels: [
      {
        title: 'Duration of requests',
        unit: 's',
        queries: [
          [quantile(0.5, 'gatehouse_request_duration_seconds', 'family'), 'p50 {{family}}'],
          [quantile(0.95, 'gatehouse_request_duration_seconds', 'family'), 'p95 {{family}}'],
        ],
      },
      {
        title: 'Time to the first token',
        unit: 's',
        queries: [
          [quantile(0.5, 'gatehouse_first_token_seconds', 'family'), 'p50 {{family}}'],
          [quantile(0.95, 'gatehouse_first_token_seconds', 'family'), 'p95 {{family}}'],
        ],
      },
      {
        title: 'First byte of providers, p95 of the last calls',
        unit: 's',
        queries: [['max by (provider, model) (gatehouse_target_first_byte_p95_seconds)', '{{provider}} {{model}}']],
      },
      {
        title: 'Share of the last calls that failed',
        unit: 'percentunit',
        queries: [['max by (provider, model) (gatehouse_target_error_ratio)', '{{provider}} {{model}}']],
      },
      {
        title: 'Failed calls by reason',
        unit: 'reqps',
        queries: [[rate('gatehouse_upstream_errors_total', 'reason'), '{{reason}}']],
      },
      {
        title: 'Open circuits',
        unit: 'short',
        queries: [['sum by (provider, model) (gatehouse_target_circuit_open)', '{{provider}} {{model}}']],
      },
      {
        title: 'Calls in flight',
        unit: 'short',
        queries: [['sum by (provider, model) (gatehouse_target_in_flight)', '{{provider}} {{model}}']],
      },
      {
        title: 'Keys that rest',
        unit: 'short',
        queries: [['sum by (provider) (gatehouse_target_keys_resting)', '{{provider}}']],
      },
    ],
  },
  {
    uid: 'gatehouse-spend',
    title: 'Gatehouse: spend and limits',
    panels: [
      {
        title: 'Spend an hour',
        unit: 'currencyUSD',
        queries: [['sum(increase(gatehouse_cost_usd_total[1h]))', 'spent']],
      },
      {
        title: 'Spend of shadows an hour',
        unit: 'currencyUSD',
        queries: [['sum(increase(gatehouse_shadow_cost_usd_total[1h]))', 'shadows']],
      },
      { title: 'Tokens', unit: 'short', queries: [[rate('gatehouse_tokens_total', 'direction'), '{{direction}}']] },
      {
        title: 'Answers whose model has no price',
        unit: 'short',
        queries: [['sum(increase(gatehouse_unpriced_total[1h]))', 'an hour']],
      },
      {
        title: 'Refused by limits',
        unit: 'reqps',
        queries: [
          [
            rate(
              'gatehouse_refusals_total',
              'code',
              'code=~"usage_authorization_.*|tokens[.]budget_exhausted|.*rate_limit.*"',
            ),
            '{{code}}',
          ],
        ],
      },
      {
        title: 'Refused because limits could not be asked',
        unit: 'reqps',
        queries: [[rate('gatehouse_refusals_total', '', 'code="usage_authority_unavailable"'), 'refused']],
      },
      {
        title: 'Messages about limits',
        unit: 'short',
        queries: [['sum(delta(gatehouse_lease_messages[5m]))', 'in five minutes']],
      },
    ],
  },
  {
    uid: 'gatehouse-fleet',
    title: 'Gatehouse: fleet and event log',
    panels: [
      {
        title: 'What doctor found',
        unit: 'short',
        queries: [['max by (check, level) (gatehouse_doctor_findings)', '{{level}} {{check}}']],
      },
      { title: 'Connected workers', unit: 'short', queries: [['max(gatehouse_connected_workers)', 'workers']] },
      {
        title: 'Age of what gateways know',
        unit: 's',
        queries: [['gatehouse_state_staleness_seconds', '{{instance}} {{worker}}']],
      },
      {
        title: 'Time until a change is everywhere',
        unit: 's',
        queries: [
          [
            'histogram_quantile(0.95, sum by (le) (rate(gatehouse_propagation_seconds_bucket[$__rate_interval])))',
            'p95',
          ],
        ],
      },
      {
        title: 'Versions of the state',
        unit: 'short',
        queries: [['gatehouse_state_version', '{{instance}} {{worker}}']],
      },
      {
        title: 'Records that are not shipped yet',
        unit: 'short',
        queries: [['gatehouse_outbox_unacknowledged_events', '{{instance}} {{worker}}']],
      },
      { title: 'Size of outboxes', unit: 'bytes', queries: [['gatehouse_outbox_bytes', '{{instance}} {{worker}}']] },
      {
        title: 'Events taken in',
        unit: 'eps',
        queries: [[rate('gatehouse_events_ingested_total', 'type'), '{{type}}']],
      },
      {
        title: 'How long events hold the ledger',
        unit: 's',
        queries: [
          [
            'histogram_quantile(0.95, sum by (le) (rate(gatehouse_ingest_transaction_seconds_bucket[$__rate_interval])))',
            'p95',
          ],
        ],
      },
      {
        title: 'Answers of the control plane',
        unit: 'reqps',
        queries: [[rate('gatehouse_http_requests_total', 'status'), '{{status}}']],
      },
      {
        title: 'State database not read for more than 3 s',
        unit: 'short',
        queries: [['sum(increase(gatehouse_state_stalls_total[15m]))', 'stalls']],
      },
      {
        title: 'Memory of requests',
        unit: 'bytes',
        queries: [['gatehouse_request_memory_bytes', '{{instance}} {{worker}}']],
      },
    ],
  },
  {
    uid: 'gatehouse-record',
    title: 'Gatehouse: sinks, alerts and proof',
    panels: [
      {
        title: 'Lag of sinks',
        unit: 's',
        queries: [['max by (sink, kind) (gatehouse_sink_lag_seconds)', '{{sink}} {{kind}}']],
      },
      {
        title: 'Records that sinks have not got',
        unit: 'short',
        queries: [['max by (sink, kind) (gatehouse_sink_lag_records)', '{{sink}} {{kind}}']],
      },
      {
        title: 'Sinks that fail',
        unit: 'short',
        queries: [['max by (sink, kind) (gatehouse_sink_failing)', '{{sink}} {{kind}}']],
      },
      {
        title: 'What sinks refused or lost',
        unit: 'short',
        queries: [
          ['max by (sink) (gatehouse_sink_refused)', 'refused {{sink}}'],
          ['max by (sink) (gatehouse_sink_lost_records)', 'lost {{sink}}'],
        ],
      },
      {
        title: 'What alerts have found',
        unit: 'short',
        queries: [['max by (severity) (gatehouse_alerts_open)', '{{severity}}']],
      },
      {
        title: 'Notices that wait',
        unit: 'short',
        queries: [['max by (channel, kind) (gatehouse_alert_notices_waiting)', '{{channel}} {{kind}}']],
      },
      {
        title: 'Channels of alerts that fail',
        unit: 'short',
        queries: [['max by (channel, kind) (gatehouse_alert_channel_failing)', '{{channel}} {{kind}}']],
      },
      {
        title: 'What verifications of the events found',
        unit: 'short',
        queries: [['max by (what) (gatehouse_verify_findings)', '{{what}}']],
      },
    ],
  },
]
