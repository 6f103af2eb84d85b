/** Records as gateways write them, for measurements of the log: exchanges of some teams, tokens and models. */
import { noAttribution } from '../../../src/events/event.ts'
import type { LogRecord } from '../../../src/events/log/record.ts'
import { timestamp } from '../../../src/lib/clock.ts'

const ids = (count: number): string[] => Array.from({ length: count }, () => Bun.randomUUIDv7())
export const world = {
  teams: ids(20),
  tokens: ids(200),
  gateways: ids(8),
  models: [
    ...['gpt-4o', 'gpt-4o-mini', 'o5', 'claude-sonnet-5', 'claude-haiku-5'],
    ...['gemini-3-flash', 'gemini-3-pro', 'mistral-large', 'llama-4', 'qwen-3'],
  ],
}
const providers = [
  'openai',
  'openai',
  'openai',
  'anthropic',
  'anthropic',
  'google',
  'google',
  'mistral',
  'groq',
  'groq',
]
const configId = crypto.randomUUID()
const bytesOf = (count: number): string => Buffer.from(crypto.getRandomValues(new Uint8Array(count))).toString('hex')
const below = (most: number): number => Math.floor(Math.random() * most)
const pick = <Item>(items: readonly [Item, ...Item[]]): Item => items[below(items.length)] ?? items[0]

/** One of 4 workers of each gateway. */
export interface Worker {
  gateway: string
  chain: string
}
export const workers: readonly Worker[] = world.gateways.flatMap((gateway) =>
  Array.from({ length: 4 }, (_, number) => ({ gateway, chain: `${gateway}/${Bun.randomUUIDv7()}/${number}` })),
)

/** One in 50 is blocked by a policy, one in 100 fails at the provider, one in 20 000 has a rare reason. */
const outcomes = {
  ok: { verdict: 'allow', reason: 'ok', status: 200 },
  blocked: { verdict: 'block', reason: 'content_policy_violation', status: 400 },
  failed: { verdict: 'error', reason: 'provider.error', status: 502 },
  rare: { verdict: 'deny', reason: 'model_not_allowed', status: 403 },
} as const
export const rareReason = outcomes.rare.reason

interface Result {
  verdict: LogRecord['verdict']
  reason: string
  status: number
}

function outcomeOf(number: number): Result {
  if (number % 20_000 === 7) return outcomes.rare
  if (number % 50 === 3) return outcomes.blocked
  return number % 100 === 5 ? outcomes.failed : outcomes.ok
}

/** An exchange that ended at `at`, in milliseconds since the epoch. */
export function exchangeOf(number: number, gateway: string, at: number): LogRecord {
  const { verdict, reason, status } = outcomeOf(number)
  const token = below(world.tokens.length)
  const team = world.teams[token % world.teams.length] ?? ''
  const which = below(world.models.length)
  const [model, provider] = [world.models[which] ?? '', providers[which] ?? '']
  const policy = pick(['p-secrets', 'p-language', 'p-topics'])
  const [latency, first] = [200 + below(4000), 50 + below(900)]
  const [input, output] = [below(3000), below(900)]
  const called = status !== 403
  const decided = number % 2 === 0 || verdict === 'block'
  return {
    event_id: Bun.randomUUIDv7(),
    event_type: 'gateway.request.outcome',
    request_id: Bun.randomUUIDv7(),
    timestamp: timestamp(at),
    ...{ verdict, reason_code: reason, config_version: 9, config_id: configId, environment: 'production' },
    event_attribution: {
      ...noAttribution,
      ...{ token_id: world.tokens[token] ?? '', team_id: team, gateway_id: gateway, key_class: 'durable' },
    },
    exchange_id: Bun.randomUUIDv7('hex', at),
    trace_id: bytesOf(16),
    details: {
      ...{ route: 'POST /v1/chat/completions', model, provider: called ? provider : null, status },
      ...{ latency_ms: latency, first_token_ms: first, attempts: called ? 1 : 0, stream: true, dispatched: called },
      ...(decided && { policy_results: [{ policy_id: policy, name: 'production rules', verdict }] }),
    },
    prompt_hash: `${configId}:${bytesOf(32)}`,
    event_cost_attribution: {
      ...{
        currency: 'USD',
        cost: below(1_000_000) / 1e9,
        estimated: false,
        input_tokens: input,
        output_tokens: output,
      },
      ...{ cached_input_tokens: null, reasoning_tokens: null, provider, model },
      ...{ price_source: 'genai-prices 0.1.8 (2026-09-23)', spend_owner: `team:${team}` },
    },
    settlements: [{ account: `budget/${team}`, amount: below(1_000_000) }],
    ...(called && {
      attempts: [
        {
          ...{ event_id: Bun.randomUUIDv7(), verdict: reason === 'provider.error' ? 'error' : 'allow' },
          reason_code: reason === 'provider.error' ? reason : 'ok',
          details: { provider, model, attempt: 1, status, latency_ms: latency, first_byte_ms: first },
        },
      ],
    }),
    ...(decided && {
      decisions: [
        {
          ...{ event_id: Bun.randomUUIDv7(), verdict, reason_code: reason },
          details: {
            policy_id: policy,
            policy_name: 'production rules',
            stage: 'request',
            kind: 'pattern',
            latency_ms: 1,
          },
        },
      ],
    }),
  }
}
