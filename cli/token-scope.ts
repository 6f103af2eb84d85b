/**
 * The flags that say what a token may do and how much, and how they become the fields of a request. Only what was given
 * is sent: for a clone or an update an absent field is inherited.
 */
import { Failure } from '../src/failure.ts'
import { readDuration } from './duration.ts'

/** Flags that may be given several times; their values come as the lines of one text. */
export const repeatableScopeFlags = ['model', 'metadata'] as const

export const scopeFlags = {
  'gateway-id': { type: 'string', description: 'The gateway it is bound to', valueHint: 'UUID' },
  'team-id': { type: 'string', description: 'The team it is bound to', valueHint: 'UUID' },
  provider: { type: 'string', description: 'The one provider it may use', valueHint: 'NAME' },
  model: { type: 'string', description: 'A model or * glob it may use; repeatable, or a comma list' },
  'max-budget': { type: 'string', description: 'The most it may spend', valueHint: 'USD' },
  'max-requests': { type: 'string', description: 'The most requests in all', valueHint: 'N' },
  'rate-limit-rpm': { type: 'string', description: 'The most requests a minute', valueHint: 'N' },
  'rate-limit-tpm': { type: 'string', description: 'The most model tokens a minute', valueHint: 'N' },
  'expires-in': { type: 'string', description: 'How long it lives: 15m, 12h or 30d', valueHint: 'TIME' },
  'expires-at': { type: 'string', description: 'When it ends, RFC 3339', valueHint: 'INSTANT' },
  metadata: { type: 'string', description: 'A note of your own; repeatable', valueHint: 'KEY=VALUE' },
} as const

export type ScopeFlags = { readonly [Name in keyof typeof scopeFlags]: string | undefined }

/** The fields of a request that the flags say. Throws `usage` for what cannot be read. */
export function readScope(flags: ScopeFlags): Record<string, unknown> {
  if (flags['expires-in'] !== undefined && flags['expires-at'] !== undefined) {
    throw new Failure('usage', { message: '--expires-in and --expires-at say the same: give one' })
  }
  const bindings = given({
    gateway_id: flags['gateway-id'],
    team_id: flags['team-id'],
    provider: flags.provider,
    model_filter: ifGiven(flags.model, readModels),
  })
  return given({
    bindings: Object.keys(bindings).length === 0 ? undefined : bindings,
    max_budget: ifGiven(flags['max-budget'], (text) => readAmount('--max-budget', text)),
    max_requests: ifGiven(flags['max-requests'], (text) => readCount('--max-requests', text)),
    rate_limit_rpm: ifGiven(flags['rate-limit-rpm'], (text) => readCount('--rate-limit-rpm', text)),
    rate_limit_tpm: ifGiven(flags['rate-limit-tpm'], (text) => readCount('--rate-limit-tpm', text)),
    expires_in_seconds: ifGiven(flags['expires-in'], (text) => readDuration('--expires-in', text)),
    expires_at: flags['expires-at'],
    metadata: ifGiven(flags.metadata, readMetadata),
  })
}

/** Reads a whole number from 1. Throws `usage` naming the flag. */
export function readCount(flag: string, text: string): number {
  const count = Number(text)
  if (/^[1-9]\d*$/.test(text) && Number.isSafeInteger(count)) return count
  throw new Failure('usage', { message: `${flag} takes a whole number from 1` })
}

/** Reads an amount in dollars above nothing. Throws `usage` naming the flag. */
export function readAmount(flag: string, text: string): number {
  const amount = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && amount > 0) return amount
  throw new Failure('usage', { message: `${flag} takes an amount in US dollars, for example 2.50` })
}

function readModels(text: string): string[] {
  const models = text.split(/[\n,]/).map((model) => model.trim())
  if (!models.includes('')) return models
  throw new Failure('usage', { message: '--model takes names with one comma between two' })
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
