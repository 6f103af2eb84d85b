import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { logOfHandshake } from './replication-handshake.ts'

/** What sqld 0.24.32 answered. */
const recorded = Buffer.from(
  '00000000890a2434393035326631322d393366392d346339642d613334322d3331343937353463396635331a2439326634636137302d333835' +
    '632d346139312d396361302d396235346238666365636133222461346131353034362d303436622d343232612d383363312d3863326162343831' +
    '626531362838321320c0ece9d9b6c137400550c096b10258006800800000000f677270632d7374617475733a300d0a',
  'hex',
)

test('finds the log id of a replication handshake', () => {
  expect(logOfHandshake(recorded)).toBe('92f4ca70-385c-4a91-9ca0-9b54b8fceca3')
})

test('finds no log id in truncated or invalid bytes', () => {
  for (let length = 0; length < 81; length++) expect(logOfHandshake(recorded.subarray(0, length))).toBeNull()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const log = logOfHandshake(bytes)
      return log === null || /^[0-9a-f-]{36}$/.test(log)
    }),
  )
})
