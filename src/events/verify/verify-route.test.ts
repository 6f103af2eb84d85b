import { afterEach, beforeEach, expect, test } from 'bun:test'
import { testApplication } from '../../api/testing/application.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous } from '../../identity/principal.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { verifyRoutes } from './verify-route.ts'

const auditor = {
  ...anonymous,
  kind: 'token',
  name: 'token:1',
  roles: ['auditor'],
  permissions: permissionsOf(['auditor']),
} as const

let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
  await proof.shipEvents(1, 300)
})
afterEach(() => proof.store.remove())

/** Asks once and gives the answer, or the code that refused it. */
function asking() {
  const features = [
    verifyRoutes({
      ...proof.store,
      clock: proof.clock,
      settings: { event_retention_days: retentionDays },
      seen: () => null,
    }),
  ]
  const application = testApplication({ features, authenticate: async () => auditor })
  return async (signal = new AbortController().signal): Promise<Response | string> => {
    const answer = await application.fetch(new Request('http://127.0.0.1/v1/events/verify', { signal }))
    return answer.ok ? answer : JSON.parse(await answer.text()).error.code
  }
}

test('runs one verification at a time', async () => {
  const ask = asking()
  const first = await ask()
  expect(await ask()).toBe('conflict')
  expect(first instanceof Response && (await first.text())).toContain('"kind":"summary"')
  expect(await ask()).toBeInstanceOf(Response)
})

test('a verification whose client left does not block the next, and its late end does not let two run at once', async () => {
  const ask = asking()
  const [gone, leaves] = [new AbortController(), new AbortController()]
  gone.abort()
  expect(await ask(gone.signal)).toBeInstanceOf(Response)
  const left = await ask(leaves.signal)
  leaves.abort()
  expect(await ask()).toBeInstanceOf(Response)
  if (left instanceof Response) await left.body?.cancel()
  expect(await ask()).toBe('conflict')
})
