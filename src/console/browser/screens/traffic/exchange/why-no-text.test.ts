import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../../../../events/event.ts'
import { whyNoText } from './why-no-text.ts'

const refused = (reason_code: string, details: Event['details'], verdict: Event['verdict'] = 'deny'): Event => ({
  ...{ event_id: 'e', event_type: 'gateway.request.outcome', request_id: null, verdict, reason_code },
  ...{ timestamp: '2026-01-01T00:00:00.000Z', config_version: 1, event_attribution: noAttribution, details },
})
const ended = 'The request ended before policies read its text.'

test('says that a request ended before the policies where no model was known', () => {
  expect(whyNoText(refused('invalid_api_token', { model: null, provider: null }))).toBe(ended)
  expect(whyNoText(refused('model_not_found', { model: 'nope', provider: null }))).toBe(ended)
})

test('does not say so of a request that a limit refused, of an MCP call, or of one that a policy blocked', () => {
  const limit = { kind: 'budget', id: 'b', unit: 'usd' }
  const call = { model: 'send_money', method: 'tools/call', provider: null }
  const result = { policy_id: 'p', kind: 'terms', stage: 'pre_request', verdict: 'block', targets: [] }
  const blocked = { provider: 'openai', policy_results: [result] }
  for (const outcome of [
    refused('usage_authorization_budget_exceeded', { provider: 'openai', limit }),
    refused('usage_authorization_budget_exceeded', { provider: null, limit }),
    refused('mcp.server_unavailable', call, 'error'),
    refused('content_policy_violation', blocked, 'block'),
    refused('provider_primary_path_error', { provider: 'openai' }, 'error'),
  ]) {
    expect(whyNoText(outcome)).toStartWith('Text is kept only where SERVICE_CAPTURE_PROMPT_BYTES is above 0')
  }
})
