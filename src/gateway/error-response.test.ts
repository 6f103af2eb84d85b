import { expect, test } from 'bun:test'
import { Failure, type FailureCode, type FailureDetails } from '../failure.ts'
import { chat } from '../languages/chat/dialect.ts'
import type { Dialect } from '../languages/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { verdictOf } from './accounting/outcome.ts'
import { answerFailure, failureResponse } from './error-response.ts'
import { prepareExchange } from './testing/relay.ts'

interface Row {
  code: FailureCode
  status: number
  verdict: string
  /** `x-should-retry: false`. */
  final: boolean
  retryAfter?: string
  details?: FailureDetails
}

/** Every kind of refusal, row by row. */
const rows: readonly Row[] = [
  {
    code: 'content_policy_violation',
    status: 400,
    verdict: 'BLOCK',
    final: true,
    details: { verdictan: { verdict: 'BLOCK', reason_code: 'terms' } },
  },
  { code: 'policy.incompatible_active_chain', status: 400, verdict: 'DENY', final: true },
  { code: 'missing_api_key', status: 401, verdict: 'DENY', final: true },
  { code: 'tokens.expired', status: 401, verdict: 'DENY', final: true },
  { code: 'tokens.budget_exhausted', status: 402, verdict: 'DENY', final: true },
  {
    code: 'usage_authorization_budget_exceeded',
    status: 402,
    verdict: 'DENY',
    final: true,
    retryAfter: '30',
    details: { retryAfter: 30 },
  },
  { code: 'tokens.request_limit_exhausted', status: 403, verdict: 'DENY', final: true },
  { code: 'session_id_mismatch', status: 422, verdict: 'DENY', final: true },
  { code: 'policy_rate_limited', status: 429, verdict: 'RATE_LIMIT', final: false },
  {
    code: 'consumer_group_rate_limit_exceeded',
    status: 429,
    verdict: 'RATE_LIMIT',
    final: false,
    retryAfter: '7',
    details: { retryAfter: 7 },
  },
  { code: 'usage_authorization_request_limit_exceeded', status: 429, verdict: 'DENY', final: true },
  { code: 'usage_authorization_rate_limited', status: 503, verdict: 'RATE_LIMIT', final: false, retryAfter: '1' },
  { code: 'usage_authority_unavailable', status: 503, verdict: 'ERROR', final: false, retryAfter: '1' },
  { code: 'upstream_provider_error', status: 502, verdict: 'ERROR', final: false },
  { code: 'provider_primary_path_error', status: 502, verdict: 'ERROR', final: false },
]

test('writes each error with the status, verdict and retry advice of its row in every text dialect', async () => {
  for (const { code, status, verdict, final, retryAfter = null, details } of rows) {
    for (const dialect of [chat, responses, messages]) {
      const failure = new Failure(code, details)
      const answer = failureResponse(dialect, failure, 'request-1', verdictOf(failure))
      const { headers } = answer
      expect([code, answer.status, headers.get('x-service-verdict')]).toEqual([code, status, verdict])
      expect([code, headers.get('x-should-retry')]).toEqual([code, final ? 'false' : null])
      expect([code, headers.get('retry-after')]).toEqual([code, retryAfter])
      expect(headers.get('x-service-error-source')).toBe('gateway')
      expect(headers.get('x-request-id')).toBe('request-1')
      expect(headers.get('request-id')).toBe(dialect === messages ? 'request-1' : null)
      const shown = dialect === messages && code === 'provider_primary_path_error' ? 'upstream_error' : code
      expect(await answer.json()).toMatchObject({ error: { code: shown }, request_id: 'request-1' })
    }
  }
})

const waiting = { verdict: 'ESCALATE', reason_code: 'review', escalation: { id: 'e-1', status: 'queued' as const } }
const refused = async (dialect: Dialect, stream: boolean, client: string | null = null) => {
  const { exchange, gateway, worker } = await prepareExchange(dialect, { stream })
  exchange.client = client
  const answer = await answerFailure(exchange, gateway, new Failure('policy.escalated', { verdictan: waiting }))
  return { answer, outcome: worker.journal.outcomes()[0] }
}

test('answers an escalated request in the form of its family, whole or streamed', async () => {
  for (const dialect of [chat, responses, messages]) {
    const whole = await refused(dialect, false)
    expect([whole.answer.status, whole.answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
    expect(whole.answer.headers.has('x-should-retry')).toBe(false)
    expect(await whole.answer.json()).toMatchObject({ verdictan: waiting })
    expect(whole.outcome).toMatchObject({ verdict: 'escalate', reason_code: 'review', details: { status: 200 } })
    const streamed = await refused(dialect, true)
    expect([streamed.answer.status, streamed.answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
    expect(await streamed.answer.text()).toContain(JSON.stringify(waiting))
  }
})

test('answers an escalated request of a known agent with a finished answer whose text names the escalation', async () => {
  const ends = [
    [chat, '"finish_reason":"stop"'],
    [responses, '"status":"completed"'],
    [messages, '"stop_reason":"end_turn"'],
  ] as const
  for (const [dialect, end] of ends) {
    for (const stream of [false, true]) {
      const { answer, outcome } = await refused(dialect, stream, 'claude-code')
      expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
      const text = await answer.text()
      expect(text).toContain(end)
      expect(text).toContain('gatehouse escalation claim e-1')
      expect(text).not.toContain('"stop_reason":"refusal"')
      expect(outcome).toMatchObject({ verdict: 'escalate', reason_code: 'review', details: { status: 200 } })
    }
  }
})

test('answers 403 to an escalated request of a family without an escalation form', async () => {
  const { answer, outcome } = await refused({ ...chat, escalation: () => null }, false)
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([403, 'ESCALATE'])
  expect(await answer.json()).toMatchObject({
    error: { type: 'access_denied', code: 'policy.escalated' },
    verdictan: waiting,
  })
  expect(outcome).toMatchObject({ verdict: 'escalate', details: { status: 403 } })
})
