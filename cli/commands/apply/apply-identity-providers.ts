/**
 * Identity providers as a file says them. `client_secret_env` names the variable that holds the secret, which stands in
 * no file; its value is sent when there was none, and by `--secrets`. The issuer of a record stays, because people are
 * known by it.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { newProviderBody } from '../../../src/members/identity-providers/identity-provider-resource.ts'
import { fromEnvironment } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { ApplyKind, Changes } from './apply-kind.ts'

const entry = newProviderBody.omit({ client_secret: true }).extend({ client_secret_env: z.string().min(1).optional() })
type Wanted = z.infer<typeof entry>

export const identityProviders: ApplyKind<Wanted> = {
  member: 'identity_providers',
  one: 'identity provider',
  path: '/v1/identity-providers',
  entry,
  // The entry is the API's own schema; what only the API knows, such as teams, it says itself.
  check: () => undefined,
  changesOf({ client_secret_env, ...wanted }, present) {
    if (present.issuer !== wanted.issuer) {
      throw new Failure('usage', {
        message: `The identity provider "${wanted.name}" has the issuer ${present.issuer}: delete it first`,
      })
    }
    const changes: Changes = {}
    for (const [field, to] of Object.entries(wanted)) {
      const from = present[field]
      if (!Bun.deepEquals(to, from)) changes[field] = { from, to }
    }
    const hasSecret = client_secret_env !== undefined
    if (hasSecret !== present.has_client_secret) {
      changes.has_client_secret = { from: present.has_client_secret, to: hasSecret }
    }
    return changes
  },
  hasSecrets: ({ client_secret_env }) => client_secret_env !== undefined,
  secretsOf,
  bodyOf(wanted, changes, terminal) {
    const { client_secret_env: _, ...plain } = wanted
    if (changes === null) return { ...plain, ...secretsOf(wanted, terminal) }
    const { has_client_secret: secret, ...changed } = changes
    return {
      ...Object.fromEntries(Object.entries(changed).map(([field, { to }]) => [field, to])),
      ...(secret === undefined ? {} : { client_secret: null, ...secretsOf(wanted, terminal) }),
    }
  },
}

function secretsOf({ client_secret_env: name }: Wanted, terminal: Terminal): Record<string, unknown> {
  return name === undefined ? {} : { client_secret: fromEnvironment(name, terminal) }
}
