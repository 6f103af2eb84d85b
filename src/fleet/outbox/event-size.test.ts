import { expect, test } from 'bun:test'
import { testEvent } from '../../events/testing/ledger.ts'
import { eventJson } from './event-size.ts'

test("half a surrogate pair from a caller becomes well-formed in every gateway's event, trimmed or not", () => {
  const details = { model: 'gpt\ud800x', 'tool\udc00': ['a\udfff'], notes: 'n'.repeat(9000) }
  const event = testEvent({ reason_code: 'odd\ud800', details, metadata: { 'k\ud800': 'v\ud800' } })
  for (const limit of [4096, 100_000]) {
    const read = JSON.parse(eventJson(event, limit))
    expect(JSON.stringify(read)).not.toContain('\\ud')
    expect(read).toMatchObject({ reason_code: 'odd\ufffd', details: { model: 'gpt\ufffdx' } })
  }
})
