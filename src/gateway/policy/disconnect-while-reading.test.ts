/** An exchange that ends from outside while policies read a long text: the reading stops, and no policy decides. */
import { afterEach, expect, spyOn, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import { Channel } from '../../inspection/channel.ts'
import { Follower } from '../../inspection/detectors/text-matcher.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { completion, question, type TestGateway } from '../testing/gateway.ts'
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

interface Reader {
  push(piece: string, last?: boolean): unknown
}

const cases = [
  ['a text policy reads the request', filter, Channel],
  ['a condition searches the request', condition, Follower],
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
  const prototype: Reader = reader.prototype
  const { push } = prototype
  const spy = spyOn(prototype, 'push').mockImplementation(function (this: Reader, piece, last) {
    pieces += 1
    units += piece.length
    if (pieces === piecesUntilCut) gateway.gateway.cutTokens([hashSecret(gateway.secret)])
    return push.call(this, piece, last)
  })
  try {
    const content = ofAnswer ? 'hello' : long
    const response = await gateway.chat({ ...question, messages: [{ role: 'user', content }] })
    expect(response.status).toBe(401)
    await eventually(() => gateway.worker.journal.outcomes().length + gateway.worker.journal.refused.length > 0)
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
