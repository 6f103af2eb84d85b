/** Where a gateway reads the state, and its credential: given at bootstrap and renewed with a session. */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { timestamp } from '../../../lib/clock.ts'
import { type BootstrapReply, credentialReplySchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'

type Source = Pick<FleetOptions, 'source' | 'clock'>

/** The source as bootstrap gives it, with a new credential. */
export function stateSource({ source }: Source): BootstrapReply['state'] {
  if ('file' in source) return { kind: 'file' }
  const { token, expiresAt } = source.credential()
  return { kind: 'replica', url: source.url, token, expires_at: expiresAt === null ? null : timestamp(expiresAt) }
}

export const credentialRoute = (options: Source) =>
  new Elysia({ name: 'runtime credential' }).use(conventions).post(
    '/v1/gateway-runtime/credential',
    ({ set }) => {
      set.headers['cache-control'] = 'no-store'
      return { state: stateSource(options), now: timestamp(options.clock.now()) }
    },
    {
      access: 'runtime:session',
      internal: true,
      response: credentialReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Renew the credential that reads the state' },
    },
  )
