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
  kept: ['order'],
  check: (body) => checkContent(contentOf(createPolicyBody.parse(body))),
})
