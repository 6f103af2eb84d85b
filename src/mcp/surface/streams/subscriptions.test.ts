import { expect, test } from 'bun:test'
import { EventStream } from './event-stream.ts'
import { Subscriptions } from './subscriptions.ts'

test('ends the subscription of a caller that does not read, and says which resources nobody watches any more', () => {
  let streams = 0
  const subscriptions = new Subscriptions(() => {
    streams += 1
    return new EventStream(streams, 'once')
  })
  const unused: (readonly string[])[] = []
  const watch = (uri: string) => subscriptions.add(uri, { resourceSubscriptions: [uri] }, (uris) => unused.push(uris))
  watch('mcp://files/slow')
  watch('mcp://files/quiet')
  const text = 'a'.repeat(1024 * 1024)
  for (let sent = 0; sent < 16; sent++) subscriptions.updated({ uri: 'mcp://files/slow', text })
  expect([subscriptions.size, unused]).toEqual([1, [['mcp://files/slow']]])
})
