/** Every screen of the console with records on it, for tests that look at them all. */
import { chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { make, sharedConsole } from './console.ts'

/** Paths by the heading that says the screen is there. */
export type Screens = readonly (readonly [path: string, heading: string])[]

/** Makes a record of each kind, names that are long among them, and gives where they are shown. */
export async function makeScreens(): Promise<Screens> {
  const { gatehouse } = await sharedConsole()
  const budget = await make('/v1/budgets', {
    name: 'looked at',
    max_budget: 1,
    scope: { kind: 'organization' },
    window: 'week',
  })
  const token = await createToken(gatehouse, { name: 'looked at', max_budget: 5, max_requests: 100 })
  const policy = await make('/v1/policies', {
    name: 'looked at',
    kind: 'pii',
    stages: ['pre_request'],
    config: { action: 'redact' },
  })
  await makeRecords()
  for (const model of ['simulator/echo', 'simulator/lorem', 'no/such-model', 'm'.repeat(200)]) {
    const requestId = model.slice(0, 40).replace('/', '-')
    const text = 'to ann@example.com'
    await (await chat(gatehouse, { token: token.token_value, model, text, requestId })).text()
  }
  await makeSession(token.token_value)
  const [outcome] = await eventsOfRequest(gatehouse, 'no-such-model')
  await makeEscalation(token.token_value)
  return [
    ['/', 'Overview'],
    ['/traffic', 'Traffic'],
    [`/traffic/${outcome?.exchange_id}`, 'no/such-model'],
    ['/sessions', 'Sessions'],
    [`/sessions/${agentSession}?token=${token.id}`, 'Session'],
    ['/sessions/none', 'Session'],
    ['/tokens', 'Tokens'],
    ['/tokens/new', 'New token'],
    [`/tokens/${token.id}`, 'looked at'],
    ['/escalations', 'Escalations'],
    ['/alerts', 'Alerts'],
    ['/alerts?kind=alerts', 'Alerts'],
    ['/alerts?kind=channels', 'Alerts'],
    ['/policies', 'Policies'],
    ['/policies/new', 'New policy'],
    ['/policies/new?kind=pattern-filter', 'New policy'],
    [`/policies/${policy.id}`, 'looked at'],
    ['/spend', 'Spend'],
    ['/spend?by=dimension:customer', 'Spend'],
    ['/reports', 'Reports'],
    ['/reports?kind=invoice', 'Reports'],
    ['/catalog', 'Catalog'],
    ['/catalog?kind=models', 'Catalog'],
    ['/catalog?kind=mcp-servers', 'Catalog'],
    ['/catalog?kind=sinks', 'Catalog'],
    ['/catalog?kind=gateways', 'Catalog'],
    ['/catalog?kind=workload-identities', 'Catalog'],
    ['/catalog?kind=budgets', 'Catalog'],
    ['/catalog?kind=consumer-groups', 'Catalog'],
    ['/catalog?kind=access-policies', 'Catalog'],
    [`/budgets/${budget.id}`, 'looked at'],
    ['/catalog?kind=dimensions', 'Catalog'],
    ['/connections', 'Connections'],
    ['/connections?server=tracker', 'Connections'],
    ['/applications', 'Applications'],
    ['/people', 'People'],
    ['/people?kind=teams', 'People'],
    ['/people?kind=members', 'People'],
    ['/people?kind=providers', 'People'],
    ['/people?kind=review', 'People'],
    ['/settings', 'Settings'],
    ['/search?q=looked', 'Search: looked'],
    ['/nowhere', 'Page not found'],
  ]
}

export const agentSession = '90a1730b-aa71-4b99-93e8-a7bcfdda441f'

/** Three turns of Claude Code: the second brings results of tools, a policy changes the third. */
export async function makeSession(token: string): Promise<void> {
  const { gatehouse } = await sharedConsole()
  const call = (name: string) => ({ type: 'tool_use', id: `call_${name}`, name, input: {} })
  const result = (name: string) => ({ type: 'tool_result', tool_use_id: `call_${name}`, content: 'done' })
  const asked = { role: 'user', content: 'Mend the test.' }
  const brought = [
    asked,
    { role: 'assistant', content: [call('Bash'), call('Read')] },
    { role: 'user', content: [result('Bash'), result('Read')] },
  ]
  const turns = [[asked], brought, [{ role: 'user', content: 'Write to ann@example.com.' }]]
  for (const [number, messages] of turns.entries()) {
    const requestId = `session-${number}`
    const answer = await fetch(`${gatehouse.gatewayUrl}/v1/messages`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': requestId },
        ...{ 'user-agent': 'claude-cli/2.1.328 (external, cli)', 'x-claude-code-session-id': agentSession },
      },
      body: JSON.stringify({ model: 'simulator/echo', max_tokens: 100, messages }),
    })
    await answer.text()
    await eventsOfRequest(gatehouse, requestId)
  }
}

const makeRecords = (): Promise<unknown> =>
  Promise.all([
    make('/v1/teams', { name: 'Checkout and payments' }),
    make('/v1/users', { email: `${'long'.repeat(12)}@example.com`, name: 'Lena Longname', role: 'auditor' }),
    make('/v1/catalog/providers', {
      name: 'cloud',
      kind: 'bedrock',
      base_url: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
    }),
    make('/v1/sinks', { name: 'siem', kind: 'http', url: 'http://127.0.0.1:9/in' }),
    make('/v1/catalog/mcp-servers', { name: 'finder', url: 'https://mcp.example.com/mcp', approval: 'required' }),
    make('/v1/catalog/mcp-servers', { name: 'tracker', url: 'https://tracker.example.com/mcp', personal: true }),
    make('/v1/identity-providers', {
      name: 'looked at',
      issuer: 'https://id.example.com/realms/acme',
      client_id: 'gatehouse',
      default_role: 'member',
      enabled: false,
    }),
    make('/v1/budgets', { name: 'the company', max_budget: 500, window: 'month', scope: { kind: 'organization' } }),
    make('/v1/consumer-groups', {
      name: 'batch',
      requests_per_minute: 600,
      members: { teams: [], users: [], tokens: [] },
    }),
    make('/v1/alert-channels', { name: 'on call', kind: 'slack', url: 'https://hooks.slack.com/services/T/B/X' }),
    make('/v1/attribution-dimensions', {
      name: 'customer',
      source: { kind: 'header', key: 'x-customer-id' },
      max_values: 100,
    }),
    make('/v1/access-policies', { name: 'small', models: ['gpt-4o-mini*'], requests_per_minute: 30 }),
  ])

/** Has requests that would open the vault wait for a person. */
export const makeAskingPolicy = (): Promise<unknown> =>
  make('/v1/policies', {
    name: 'asks for a person',
    kind: 'escalate',
    stages: ['pre_request'],
    when: 'request.text.contains("open the vault")',
    config: { reason_code: 'vault.opened' },
  })

/** A request that waits for a person; the gateway has the policy as soon as it has heard of it. */
async function makeEscalation(token: string): Promise<void> {
  const { gatehouse } = await sharedConsole()
  await makeAskingPolicy()
  await eventually(async () => {
    const answer = await chat(gatehouse, { token, model: 'simulator/echo', text: 'open the vault', requestId: 'vault' })
    await answer.text()
    if (answer.headers.get('x-service-verdict') !== 'ESCALATE') throw new Error('The policy is not there yet')
  })
  await eventsOfRequest(gatehouse, 'vault')
}

/** A path as the name of a picture. */
export const fileName = (path: string): string =>
  path
    .replace(/[0-9a-f-]{36}/, 'one')
    .replace(/[^a-z]+/g, '-')
    .replace(/^-|-$/g, '') || 'overview'
