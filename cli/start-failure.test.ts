import { expect, test } from 'bun:test'
import { settingsSchema } from '../src/config.ts'
import { reserveAddress } from '../src/lib/listen.ts'
import { startFailure } from './start-failure.ts'

test('an address that is taken is told apart, with its flag', () => {
  const holder = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const settings = settingsSchema.parse({ gateway_listen: `127.0.0.1:${holder.port}` })
  let thrown: unknown = null
  try {
    reserveAddress(settings.gateway_listen)
  } catch (error) {
    thrown = startFailure(error, settings, 'gateway_listen')
  }
  holder.stop(true)
  const message = `Cannot listen at 127.0.0.1:${holder.port} (--gateway-listen): another process listens there`
  expect(thrown).toMatchObject({ code: 'address_in_use', message })
})
