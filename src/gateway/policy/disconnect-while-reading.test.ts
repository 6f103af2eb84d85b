/** An exchange that ends from outside while policies read a long text: the reading stops, and no policy decides. */
import { afterEach, expect, spyOn, test } from 'bun:test'
import { hashSecret } from '../../identity/secret.ts'
import { Channel } from '../../inspection/channel.ts'
import { PatternSearch } from '../../policies/conditions/pattern-search.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { completion, question, type TestGateway, waitUntil } from '../testing/gateway.ts'
import { policy, startPoliced } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const long = 'a'.repeat(4_000_000)
const piecesUntilCut = 10
const mostUnitsRead = long.length / 2

const filter = {
  kind: 'pattern-filter',
  config: { patterns: [{ name: 'x', pattern: '[a-z]+[0-9]' }], action: 'block' },
}
const condition = {
  kind: 'condition',
  when: 'request.text.matches("a+b")',
  config: { verdict: 'deny', reason_code: 'test.denied' },
}
/** The stages of answers take no pattern without a bound. */
const answerFilter = {
  kind: 'term-filter',
  config: { terms: ['swordfish'], action: 'redact' },
  stages: ['post_request'] satisfies StoredPolicy['stages'],
}

const cases = [
  ['a text policy reads the request', filter, Channel],
  ['a condition searches the request', condition, PatternSearch],
  ['a text policy reads the answer', answerFilter, Channel],
] as const

test.each(cases)('stops at the next yield when the exchange is cut while %s', async (_, members, reader) => {
  const ofAnswer = 'stages' in members
  // What is found first has the rest followed.
  const answer = { ...completion, choices: [{ ...completion.choices[0], message: { content: `swordfish ${long}` } }] }
  const gateway = await startPoliced([policy({ id: 'a', ...members }), policy({ id: 'b', ...filter })], () =>
    Response.json(ofAnswer ? answer : completion),
  )
  running = gateway
  let pieces = 0
  let units = 0
  const { push } = reader.prototype
  const spy = spyOn(reader.prototype, 'push').mockImplementation(function (
    this: Channel & PatternSearch,
    piece: string,
  ) {
    pieces += 1
    units += piece.length
    if (pieces === piecesUntilCut) gateway.gateway.cutTokens([hashSecret(gateway.secret)])
    return push.call(this, piece)
  })
  try {
    const content = ofAnswer ? 'hello' : long
    const response = await gateway.chat({ ...question, messages: [{ role: 'user', content }] })
    expect(response.status).toBe(401)
    await waitUntil(() => gateway.worker.journal.outcomes().length + gateway.worker.journal.refused.length > 0)
    expect(units).toBeGreaterThan(0)
    expect(units).toBeLessThan(mostUnitsRead)
    expect(JSON.stringify([gateway.worker.journal.outcomes(), gateway.worker.journal.refused])).toContain(
      'token.revoked',
    )
    expect(JSON.stringify(gateway.worker.journal.outcomes())).not.toContain('"policy_id":"a"')
  } finally {
    spy.mockRestore()
  }
})
