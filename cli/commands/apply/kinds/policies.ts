import { checkContent, contentOf, createPolicyBody, updatePolicyBody } from '../../../../src/policies/policy-body.ts'
import { kindOf } from '../kind.ts'

const description = {
  one: 'policy',
  plural: 'policies',
  path: '/v1/policies',
  create: createPolicyBody,
  update: updatePolicyBody,
}

/** A policy keeps its place in the chain if the file does not give one. */
export const policies = kindOf(description, {
  references: {
    'targets.teams': () => ({ path: '/v1/teams' }),
    'targets.gateways': () => ({ path: '/v1/gateways' }),
    'targets.tokens': () => ({ path: '/v1/tokens' }),
  },
  kept: ['order'],
  check: (body) => checkContent(contentOf(createPolicyBody.parse(body))),
})
