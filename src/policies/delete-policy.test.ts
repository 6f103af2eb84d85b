import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { createToken } from '../tokens/changes/create.ts'
import { revokeToken } from '../tokens/changes/revoke.ts'
import { createTokenBody } from '../tokens/token-body.ts'
import { createPolicy, deletePolicy } from './change-policy.ts'
import { createPolicyBody } from './policy-body.ts'
import { requirePolicy } from './policy-record.ts'

let made: TemporaryInstallation
beforeEach(async () => {
  made = await temporaryInstallation()
})
afterEach(() => made.store.remove())

const policyBody = createPolicyBody.parse({
  name: 'no secrets',
  kind: 'audit',
  stages: ['pre_request'],
  config: {},
})

test('refuses to delete a policy that active tokens name, and counts them', async () => {
  const actor = { principal: made.owner, requestId: 'request' }
  const policy = await createPolicy(made.deps, actor, policyBody)
  const { id } = policy.stored
  const body = createTokenBody.parse({ name: 'one', purpose: 'general', policy_ids: [id] })
  const tokens = [await createToken(made.deps, actor, body), await createToken(made.deps, actor, body)]
  await expect(deletePolicy(made.deps, actor, policy)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('2 tokens'),
  })
  for (const { token } of tokens) await revokeToken(made.deps, actor, token.id)
  await deletePolicy(made.deps, actor, policy)
  await expect(requirePolicy(made.deps, id)).rejects.toMatchObject({ code: 'not_found' })
})

test('keeps a policy that a token takes up at the moment of its deletion', async () => {
  const actor = { principal: made.owner, requestId: 'request' }
  const policy = await createPolicy(made.deps, actor, policyBody)
  const body = createTokenBody.parse({ name: 'one', purpose: 'general', policy_ids: [policy.stored.id] })
  const recorder: typeof made.deps.recorder = {
    ...made.deps.recorder,
    async change(change) {
      await createToken(made.deps, actor, body)
      return made.deps.recorder.change(change)
    },
  }
  await expect(deletePolicy({ ...made.deps, recorder }, actor, policy)).rejects.toMatchObject({ code: 'conflict' })
})
