/**
 * Providers as a file says them. Secrets stand in no file: `api_key_env` and `header_env` name the variables that hold
 * them. The API shows none, so of a secret only whether it is there can differ; it is sent with a changed address, which
 * needs it again, and by `--secrets`. One that the file does not name is taken away.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { checkedBaseUrl } from '../../../src/providers/base-url.ts'
import { createProviderBody, timeoutsSchema, withPreset } from '../../../src/providers/provider-resource.ts'
import { fromEnvironment } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { ApplyKind, Changes, Present } from './apply-kind.ts'

const { name, preset, kind, base_url, allow_unlisted_models, default_price } = createProviderBody.shape

const entry = z
  .strictObject({
    ...{ name, preset, kind, base_url, allow_unlisted_models },
    api_key_env: z.string().min(1).optional(),
    header_env: z.record(z.string().min(1), z.string().min(1)).optional(),
    default_price: default_price.unwrap().nullable().optional(),
    timeouts: timeoutsSchema.nullable().optional(),
  })
  .transform((given, context) => {
    const called = given.name ?? given.preset
    if (called === undefined) context.addIssue({ code: 'custom', path: ['name'], message: 'Give a name, or a preset' })
    return { ...given, name: called ?? '' }
  })
type Wanted = z.infer<typeof entry>

export const providers: ApplyKind<Wanted> = {
  member: 'providers',
  one: 'provider',
  path: '/v1/catalog/providers',
  entry,
  check(wanted) {
    wantedRecord(wanted)
  },
  changesOf,
  hasSecrets: ({ api_key_env, header_env }) => api_key_env !== undefined || header_env !== undefined,
  secretsOf,
  bodyOf(wanted, changes, terminal) {
    const { kind, ...record } = wantedRecord(wanted)
    if (changes === null) {
      const { base_url, default_price, timeouts, ...rest } = record
      const given = Object.entries({ base_url, default_price, timeouts }).filter(([, value]) => value !== null)
      return { ...rest, kind, ...Object.fromEntries(given), ...secretsOf(wanted, terminal) }
    }
    const changed = Object.entries(record).filter(([field]) => changes[field] !== undefined)
    const anew = ['base_url', 'api_key_env', 'header_env'].some((field) => changes[field] !== undefined)
    const secrets = anew ? { api_key: null, headers: null, ...secretsOf(wanted, terminal) } : {}
    return { ...Object.fromEntries(changed), ...secrets }
  },
}

/** The record that an entry asks for, without secrets. Throws where the API would not take it. */
function wantedRecord({ base_url, default_price = null, timeouts = null, ...wanted }: Wanted) {
  const { name, kind, unlisted } = withPreset(wanted)
  return {
    name,
    kind,
    // Whether plain HTTP is allowed is a setting of the control plane.
    base_url: base_url === undefined ? null : checkedBaseUrl(base_url, 'anywhere'),
    allow_unlisted_models: unlisted,
    default_price,
    timeouts,
  }
}

function changesOf(wanted: Wanted, present: Present): Changes {
  const { kind, ...record } = wantedRecord(wanted)
  if (kind !== present.kind) {
    const message = `The provider "${wanted.name}" is of kind ${present.kind}, which cannot be changed to ${kind}: delete it, or choose another name`
    throw new Failure('usage', { message })
  }
  const changes: Changes = {}
  const compare = (field: string, to: unknown, from: unknown) => {
    if (!Bun.deepEquals(to, from)) changes[field] = { from, to }
  }
  for (const [field, to] of Object.entries(record)) compare(field, to, present[field])
  compare('api_key_env', wanted.api_key_env !== undefined, present.has_api_key)
  compare('header_env', Object.keys(wanted.header_env ?? {}).toSorted(), present.header_names)
  return changes
}

/** Only those that are named. */
function secretsOf({ api_key_env, header_env }: Wanted, terminal: Terminal): Record<string, unknown> {
  const headers = Object.entries(header_env ?? {}).map(([name, from]) => [name, fromEnvironment(from, terminal)])
  return {
    ...(api_key_env === undefined ? {} : { api_key: fromEnvironment(api_key_env, terminal) }),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
  }
}
