import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isInside } from './addresses.ts'

test.each(['8.8.8.8', '1.1.1.1', '172.15.0.1', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450:4001::5'])(
  '%s is outside',
  (address) => expect(isInside(address)).toBe(false),
)

test.each(['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.9.9.9', '169.254.169.254', '172.16.0.1', '172.31.255.255'])(
  '%s is inside',
  (address) => expect(isInside(address)).toBe(true),
)

test.each(['192.168.1.1', '224.0.0.1', '255.255.255.255', '::', '::1', 'fe80::1%eth0', 'fd12::1', 'ff02::1'])(
  '%s is inside too',
  (address) => expect(isInside(address)).toBe(true),
)

test.each(['2002:7f00:1::', '2001:db8::1', 'localhost', ''])('%s is not outside', (address) =>
  expect(isInside(address)).toBe(true),
)

test('treats a mapped IPv6 address as the IPv4 address it holds', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(isInside(`::ffff:${address}`)).toBe(isInside(address))
      expect(isInside(`64:ff9b::${address}`)).toBe(isInside(address))
    }),
  )
})
