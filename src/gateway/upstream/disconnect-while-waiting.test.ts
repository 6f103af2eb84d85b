/** What an exchange waited for when its caller left: it is let go of, and nothing goes on. */
import { expect, test } from 'bun:test'
import { hashSecret } from '../../identity/secret.ts'
import { chat } from '../../languages/chat/dialect.ts'
import { providerKinds } from '../../providers/kinds/index.ts'
import type { Reservation } from '../../usage/usage-limits.ts'
import { reserveUsage } from '../admission/reserve.ts'
import { reserveGrant } from '../admission/review-grant.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import { digestOf } from '../policy/request-digest.ts'
import { prepareExchange } from '../testing/relay.ts'
import { testProvider } from '../testing/worker.ts'

async function known() {
  const { exchange, gateway, worker } = await prepareExchange(chat, { stream: false })
  exchange.tokenHash = hashSecret(worker.addToken({ id: 'token' }))
  exchange.token = worker.tokens.get(exchange.tokenHash) ?? null
  exchange.body = new TextEncoder().encode('{}')
  return { exchange, gateway, worker }
}

test('gives back a grant when the client disconnected before it arrived', async () => {
  const { exchange, gateway, worker } = await known()
  let released = 0
  const reservation: Reservation = {
    held: [{ account: 'grant/g', amount: 1 }],
    extend: () => false,
    book: (used) => used,
    release() {
      released += 1
    },
  }
  const given = Promise.withResolvers<Reservation>()
  Object.assign(gateway.worker, { usageLimits: { reserve: () => given.promise, exhausted: () => false } })
  const digest = digestOf(exchange, gateway)
  worker.grants.push({ id: 'g', tokenId: 'token', digest, expiresAt: Number.POSITIVE_INFINITY })
  const using = reserveGrant(exchange, gateway)
  given.resolve(reservation)
  cancelForDisconnect(exchange, gateway)
  expect(await using).toBe(false)
  expect([released, exchange.grant]).toEqual([1, null])
})

test('reserves nothing when the client disconnected while the price table was loaded', async () => {
  const { exchange, gateway } = await known()
  exchange.opened = false
  const kind = providerKinds.get('openai')
  if (kind === undefined) throw new Error('There is no such kind')
  exchange.paths = [{ id: 'm', aliases: [], upstreamModel: 'm', provider: testProvider(), kind, listed: null }]
  const reserving = reserveUsage(exchange, gateway)
  cancelForDisconnect(exchange, gateway)
  expect(await Promise.resolve(reserving).catch(({ code }) => code)).toBe('client_left')
  expect(exchange.priced).toEqual([])
})
