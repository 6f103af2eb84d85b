import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { createPolicy, updatePolicy } from './change-policy.ts'
import { createPolicyBody } from './policy-body.ts'

let made: TemporaryInstallation
beforeAll(async () => {
  made = await temporaryInstallation()
})
afterAll(() => made.store.remove())

const actor = () => ({ principal: made.owner, requestId: 'request' })
const create = (name: string) =>
  createPolicy(made.deps, actor(), createPolicyBody.parse({ name, kind: 'audit', stages: ['pre_request'], config: {} }))

test('refuses the name of another policy and says that the name is taken', async () => {
  await create('taken')
  const policy = await create('renamed')
  await expect(updatePolicy(made.deps, actor(), policy, { name: 'taken' })).rejects.toMatchObject({
    code: 'conflict',
    param: 'name',
  })
})

test('refuses the second of two concurrent changes even when the name stays', async () => {
  const policy = await create('kept')
  const outcomes = await Promise.allSettled(
    [1, 2].map(() => updatePolicy(made.deps, actor(), policy, { enabled: false })),
  )
  expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'made')).sort()).toEqual([
    'made',
    'version_mismatch',
  ])
})
