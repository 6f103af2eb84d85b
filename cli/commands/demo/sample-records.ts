/** The records of the demonstration: who asks, what may be asked, and what governs it. All names are invented. */
import { z } from 'zod'
import type { Api } from '../../command/api.ts'
import { failingModel, type StandIn } from './stand-in-provider.ts'

/** The callers of the sample traffic. */
export type CallerName =
  | 'shop-assistant'
  | 'support-copilot'
  | 'research-notebook'
  | 'nightly-summaries'
  | 'docs-search'
  | 'anna-claude-code'
  | 'retired-prototype'

export interface SampleRecords {
  /** The secrets of the callers' tokens. */
  secrets: Readonly<Record<CallerName, string>>
  /** Budgets whose amount follows what the opening spent: one will nearly be used up, one is, whatever answers cost. */
  tightened: readonly { id: string; usedShare: number }[]
}

const identified = z.object({ id: z.string() })
const madeToken = z.object({ id: z.string(), token_value: z.string() })

type TeamName = 'Checkout' | 'Support' | 'Research' | 'Platform'

const people: readonly (readonly [name: string, role: string, team: TeamName])[] = [
  ['Anna Keller', 'operator', 'Platform'],
  ['Ben Okafor', 'member', 'Checkout'],
  ['Carla Ruiz', 'member', 'Support'],
  ['Dmitri Volkov', 'member', 'Research'],
  ['Emi Tanaka', 'auditor', 'Platform'],
  ['Farid Nazari', 'admin', 'Support'],
]

export async function makeSampleRecords(api: Api, standIn: StandIn): Promise<SampleRecords> {
  const make = async (path: string, body: object) => (await api.json({ method: 'POST', path, body }, identified)).id
  const team = (name: string) => make('/v1/teams', { name })
  const teams = {
    ...{ Checkout: await team('Checkout'), Support: await team('Support') },
    ...{ Research: await team('Research'), Platform: await team('Platform') },
  }
  const users = new Map<string, string>()
  for (const [name, role, of] of people) {
    const id = await make('/v1/users', { name, email: emailOf(name), role })
    await api.response({ method: 'POST', path: `/v1/teams/${teams[of]}/members`, body: { user_id: id } })
    users.set(name, id)
  }
  await makeCatalog(make, standIn)
  const policyIds = await makePolicies(make, teams)
  await changePolicies(api, policyIds)
  await makeAlerts(make)
  const budgets = {
    support: await make('/v1/budgets', budget('Support this month', 100, { kind: 'team', id: teams.Support })),
    research: await make(
      '/v1/budgets',
      budget('Research this week', 100, { kind: 'team', id: teams.Research }, 'week'),
    ),
  }
  await make('/v1/budgets', budget('The company', 2500, { kind: 'organization' }))
  return {
    secrets: await makeTokens(api, teams, users),
    tightened: [
      { id: budgets.support, usedShare: 0.42 },
      { id: budgets.research, usedShare: 1 },
    ],
  }
}

const emailOf = (name: string): string => `${name.toLowerCase().replace(' ', '.')}@example.com`

const budget = (name: string, max_budget: number, scope: object, window = 'month') => ({
  ...{ name, max_budget, window, scope },
})

type Make = (path: string, body: object) => Promise<string>

async function makeCatalog(make: Make, { url }: StandIn): Promise<void> {
  const key = 'sk-demonstration-0000000000000000'
  const providers = '/v1/catalog/providers'
  const openai = await make(providers, { name: 'openai', kind: 'openai', base_url: `${url}/openai/v1`, api_key: key })
  const anthropic = await make(providers, {
    ...{ name: 'anthropic', kind: 'anthropic', base_url: `${url}/anthropic`, api_key: key },
  })
  const models = '/v1/catalog/models'
  await make(models, { id: 'claude-sonnet-4-5', provider_id: anthropic })
  await make(models, { id: 'claude-haiku-4-5', provider_id: anthropic })
  await make(models, { id: 'gpt-5-mini', provider_id: openai })
  await make(models, { id: 'gpt-5', provider_id: openai, fallbacks: ['claude-sonnet-4-5'] })
  await make(models, { id: failingModel, provider_id: openai, price: { input_per_million: 2, output_per_million: 12 } })
  await make(models, { id: 'text-embedding-3-small', provider_id: openai })
  await make(models, {
    id: 'fast',
    strategy: 'weighted',
    targets: [
      { provider: 'openai', upstream_model: 'gpt-5-mini', weight: 3 },
      { provider: 'anthropic', upstream_model: 'claude-haiku-4-5', weight: 1 },
    ],
  })
  await make('/v1/catalog/mcp-servers', { name: 'helpdesk', url: `${url}/mcp` })
}

async function makePolicies(make: Make, teams: Readonly<Record<TeamName, string>>) {
  const policy = (body: object) => make('/v1/policies', { stages: ['pre_request'], ...body })
  const pii = await policy({
    name: 'Personal data stays inside',
    kind: 'pii',
    config: { action: 'redact', types: ['email', 'card'] },
  })
  await policy({ name: 'No credentials in prompts', kind: 'secrets', config: { action: 'block' } })
  await policy({
    name: 'Project Falcon is confidential',
    kind: 'term-filter',
    config: { terms: ['Project Falcon'], action: 'block' },
    targets: { teams: [teams.Checkout, teams.Support] },
  })
  await policy({
    name: 'Large refunds need a person',
    kind: 'escalate',
    when: 'request.text.contains("refund of $")',
    config: { reason_code: 'refund.large' },
    targets: { teams: [teams.Support] },
  })
  await policy({
    name: 'Summaries use small models',
    kind: 'model-access',
    config: { deny_models: ['gpt-5', 'claude-sonnet*'] },
    targets: { teams: [teams.Platform] },
  })
  const injection = await policy({
    name: 'Prompt injection, watched',
    kind: 'prompt-injection',
    mode: 'monitor',
    config: { action: 'block' },
  })
  return { pii, injection }
}

/** So that policies have versions to compare. */
async function changePolicies(api: Api, { pii, injection }: { pii: string; injection: string }): Promise<void> {
  const change = (id: string, body: object) =>
    api.json({ method: 'PATCH', path: `/v1/policies/${id}`, body }, identified)
  await change(pii, { config: { action: 'redact', types: ['email', 'card', 'iban', 'phone'], restore: true } })
  await change(injection, { config: { action: 'block', threshold: 0.6 } })
}

async function makeAlerts(make: Make): Promise<void> {
  await make('/v1/alerts', { name: 'Many refusals', condition: 'refusals', thresholds: [15], at_least: 20 })
  await make('/v1/alerts', {
    name: 'OpenAI fails',
    condition: 'error_rate',
    scope: { kind: 'provider', id: 'openai' },
    severity: 'critical',
  })
}

async function makeTokens(
  api: Api,
  teams: Readonly<Record<TeamName, string>>,
  users: ReadonlyMap<string, string>,
): Promise<SampleRecords['secrets']> {
  const make = async (name: CallerName, body: object) =>
    await api.json({ method: 'POST', path: '/v1/tokens', body: { name, purpose: 'general', ...body } }, madeToken)
  const of = (team: TeamName, more: object = {}) => ({ bindings: { team_id: teams[team], ...more } })
  const retired = await make('retired-prototype', of('Checkout'))
  const secrets = {
    'shop-assistant': (await make('shop-assistant', of('Checkout', { max_budget: 40 }))).token_value,
    'support-copilot': (await make('support-copilot', of('Support'))).token_value,
    'research-notebook': (await make('research-notebook', of('Research'))).token_value,
    'nightly-summaries': (
      await make('nightly-summaries', { ...of('Platform'), expires_in_seconds: 2 * 86_400, rate_limit_rpm: 6 })
    ).token_value,
    'docs-search': (await make('docs-search', of('Platform', { model_filter: ['text-embedding-*', 'fast'] })))
      .token_value,
    'anna-claude-code': (
      await make('anna-claude-code', of('Platform', { user_id: users.get('Anna Keller'), max_requests: 5000 }))
    ).token_value,
    'retired-prototype': retired.token_value,
  }
  await api.json({ method: 'DELETE', path: `/v1/tokens/${retired.id}` }, identified)
  return secrets
}
