import { expect, test } from 'bun:test'
import { question } from '../testing/gateway.ts'
import { eventStream, policy, startPoliced, streamOf } from '../testing/policies.ts'

test('records decisions in stage order, even when an earlier stage decided later', async () => {
  const awaiting = policy({
    ...{ id: 'awaits', kind: 'condition', stages: ['post_request'], when: 'response.text.contains("lion")' },
    ...{ config: { verdict: 'deny', reason_code: 'c.c' }, whenBroken: 'allow' },
  })
  const term = policy({
    ...{ id: 'looks', kind: 'term-filter', stages: ['pre_response'], position: 2 },
    config: { terms: ['zebra'], action: 'block' },
  })
  const long = streamOf(...Array.from({ length: 50 }, () => 'so it goes on '), 'a zebra')
  const gateway = await startPoliced([awaiting, term], () => new Response(long, eventStream), {
    stream_hold_bytes: 1024,
  })
  await (await gateway.chat({ ...question, stream: true })).text()
  const { journal } = gateway.worker
  const expected = [
    { stage: 'post_request', policy_id: 'awaits', verdict: 'allow' },
    { stage: 'pre_response', policy_id: 'looks', verdict: 'block' },
  ]
  expect(journal.outcomes()).toMatchObject([{ verdict: 'block', details: { policy_results: expected } }])
  const decisions = journal.closed.values().flatMap((events) => events.filter(isDecision))
  expect([...decisions].map(({ details }) => details)).toMatchObject(expected)
  await gateway.stop()
})

const isDecision = ({ event_type }: { event_type: string }) => event_type === 'decision'
