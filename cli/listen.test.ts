import { expect, test } from 'bun:test'
import { settingsSchema } from '../src/config.ts'
import { localUrl, settleAddress, splitAddress } from './listen.ts'
import { startFailure } from './start-failure.ts'

test('port 0 becomes a port that can be listened at', () => {
  const address = settleAddress('127.0.0.1:0')
  const { host, port } = splitAddress(address)
  expect(host).toBe('127.0.0.1')
  expect(port).toBeGreaterThan(0)
  expect(settleAddress(address)).toBe(address)
})

test('an address that is taken is told apart, with its flag', () => {
  const holder = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const settings = settingsSchema.parse({ gateway_listen: `127.0.0.1:${holder.port}` })
  let thrown: unknown = null
  try {
    settleAddress(settings.gateway_listen)
  } catch (error) {
    thrown = startFailure(error, settings, 'gateway_listen')
  }
  holder.stop(true)
  const message = `Cannot listen at 127.0.0.1:${holder.port} (--gateway-listen): another process listens there`
  expect(thrown).toMatchObject({ code: 'address_in_use', message })
})

test('what listens everywhere is reached over loopback', () => {
  expect(localUrl('0.0.0.0:7070')).toBe('http://127.0.0.1:7070')
  expect(localUrl('[::]:7070')).toBe('http://[::1]:7070')
  expect(localUrl('localhost:7070')).toBe('http://localhost:7070')
})
