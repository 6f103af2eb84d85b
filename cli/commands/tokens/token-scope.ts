/**
 * The flags that say what a token may do and how much, and how they become the fields of a request. Only what was given
 * is sent: for a clone or an update an absent field is inherited.
 */
import { Failure } from '../../../src/failure.ts'
import type { References } from '../../command/record-names.ts'
import { readAmount, readCount, readDuration, readList } from '../../command/values.ts'

/** What a token may do on the control plane; a clone has its source's. */
export const roleFlag = {
  role: {
    type: 'string',
    repeatable: true,
    description: 'What it may do (default member) (repeatable, or with commas)',
  },
} as const

export const readRoles = (role: string | undefined): string[] | undefined =>
  ifGiven(role, (text) => readList('--role', text))

const metadataTrusts = ['none', 'caller']
const mcpTools = ['listed', 'searched']

export const scopeFlags = {
  'gateway-id': { type: 'string', description: 'The gateway it is bound to', valueHint: 'NAME|UUID' },
  'team-id': { type: 'string', description: 'The team it is bound to', valueHint: 'NAME|UUID' },
  'user-id': { type: 'string', description: 'The person it acts for', valueHint: 'EMAIL|UUID' },
  'budget-id': { type: 'string', description: 'The budget it spends from', valueHint: 'NAME|UUID' },
  provider: { type: 'string', description: 'The one provider it may use', valueHint: 'NAME' },
  model: { type: 'string', repeatable: true, description: 'A model or * glob it may use (repeatable, or with commas)' },
  'policy-id': {
    type: 'string',
    repeatable: true,
    description: 'A policy to attach (repeatable, or with commas)',
    valueHint: 'NAME|UUID',
  },
  'access-policy-id': {
    type: 'string',
    repeatable: true,
    description: 'An access policy to attach (repeatable, or with commas)',
    valueHint: 'NAME|UUID',
  },
  'max-budget': { type: 'string', description: 'The most it may spend', valueHint: 'USD' },
  'max-requests': { type: 'string', description: 'The most requests in all', valueHint: 'N' },
  'rate-limit-rpm': { type: 'string', description: 'The most requests a minute', valueHint: 'N' },
  'rate-limit-tpm': { type: 'string', description: 'The most model tokens a minute', valueHint: 'N' },
  'expires-in': { type: 'string', description: 'How long it lives: 15m, 12h or 30d', valueHint: 'TIME' },
  'expires-at': { type: 'string', description: 'When it ends, RFC 3339', valueHint: 'INSTANT' },
  metadata: { type: 'string', repeatable: true, description: 'Your own note (repeatable)', valueHint: 'KEY=VALUE' },
  'metadata-trust': {
    type: 'enum',
    options: metadataTrusts,
    description: 'Whether what the caller says of itself counts, in headers and metadata of the body',
  },
  'mcp-tools': {
    type: 'enum',
    options: mcpTools,
    description: 'Whether it is shown each tool of MCP servers, or two tools that find and call them',
  },
} as const

/** Where the records are listed that these flags name. */
export const scopeReferences: References = {
  'bindings.gateway_id': '/v1/gateways',
  'bindings.team_id': '/v1/teams',
  'bindings.user_id': '/v1/users',
  'bindings.budget_id': '/v1/budgets',
  policy_ids: '/v1/policies',
  access_policy_ids: '/v1/access-policies',
}

export type ScopeFlags = { readonly [Name in keyof typeof scopeFlags]: string | undefined }

/** The fields of a request from the flags. Throws `usage` for an unreadable value. */
export function readScope(flags: ScopeFlags): Record<string, unknown> {
  if (flags['expires-in'] !== undefined && flags['expires-at'] !== undefined) {
    throw new Failure('usage', { message: '--expires-in and --expires-at say the same: give one' })
  }
  const bindings = given({
    gateway_id: flags['gateway-id'],
    team_id: flags['team-id'],
    user_id: flags['user-id'],
    budget_id: flags['budget-id'],
    provider: flags.provider,
    model_filter: ifGiven(flags.model, (text) => readList('--model', text)),
  })
  return given({
    bindings: Object.keys(bindings).length === 0 ? undefined : bindings,
    policy_ids: ifGiven(flags['policy-id'], (text) => readList('--policy-id', text)),
    access_policy_ids: ifGiven(flags['access-policy-id'], (text) => readList('--access-policy-id', text)),
    metadata_trust: flags['metadata-trust'],
    mcp_tools: flags['mcp-tools'],
    max_budget: ifGiven(flags['max-budget'], (text) => readAmount('--max-budget', text)),
    max_requests: ifGiven(flags['max-requests'], (text) => readCount('--max-requests', text)),
    rate_limit_rpm: ifGiven(flags['rate-limit-rpm'], (text) => readCount('--rate-limit-rpm', text)),
    rate_limit_tpm: ifGiven(flags['rate-limit-tpm'], (text) => readCount('--rate-limit-tpm', text)),
    expires_in_seconds: ifGiven(flags['expires-in'], (text) => readDuration('--expires-in', text)),
    expires_at: flags['expires-at'],
    metadata: ifGiven(flags.metadata, readMetadata),
  })
}

function readMetadata(text: string): Record<string, string> {
  const entries = text.split('\n').map((line) => /^([^=]+)=(.*)$/.exec(line)?.slice(1) ?? [])
  if (entries.some(([key]) => key === undefined)) {
    throw new Failure('usage', { message: '--metadata takes key=value' })
  }
  return Object.fromEntries(entries)
}

/** The fields that have a value. */
export const given = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const ifGiven = <Value>(text: string | undefined, read: (text: string) => Value): Value | undefined =>
  text === undefined ? undefined : read(text)
