/** Policies to start from: each is complete, and begins by watching where it could refuse what should pass. */

import type { CreatePolicyBody } from '../../api/routes.ts'

export interface StartingPoint {
  /** In the address. */
  name: string
  about: string
  /** Without the defaults, which the API gives. */
  body: Pick<CreatePolicyBody, 'name' | 'kind'> & { stages: string[]; config: object; when?: string; mode?: string }
}

const request = ['pre_request']

export const startingPoints: readonly StartingPoint[] = [
  {
    name: 'personal-data',
    about:
      'Replaces e-mail addresses, phone, card and account numbers before a request leaves, and puts them back in the answer.',
    body: {
      ...{ name: 'Personal data stays inside', kind: 'pii', stages: request },
      config: { action: 'redact', restore: true },
    },
  },
  {
    name: 'credentials',
    about: 'Blocks requests that hold keys, tokens, passwords in addresses, or private keys.',
    body: { name: 'No credentials in prompts', kind: 'secrets', stages: request, config: { action: 'block' } },
  },
  {
    name: 'credentials-in-answers',
    about: 'Replaces credentials that a model writes, also in streams.',
    body: {
      ...{ name: 'No credentials in answers', kind: 'secrets', stages: ['pre_response'] },
      config: { action: 'redact' },
    },
  },
  {
    name: 'injection',
    about: 'Watches for texts from outside that try to take over the model. It only records, until you enforce it.',
    body: {
      ...{ name: 'Prompt injection', kind: 'prompt-injection', stages: request, mode: 'monitor' },
      config: { action: 'block' },
    },
  },
  {
    name: 'confidential-terms',
    about: 'Blocks requests that name something confidential, in any case, width or disguise.',
    body: {
      ...{ name: 'Confidential names', kind: 'term-filter', stages: request },
      config: { terms: ['Project Falcon'], action: 'block', homoglyphs: true, word_boundaries: true },
    },
  },
  {
    name: 'ask-a-person',
    about: 'Lets a person decide on requests that a condition matches.',
    body: {
      ...{ name: 'A person decides', kind: 'escalate', stages: request, when: 'request.text.contains("refund")' },
      config: { reason_code: 'refund.asked' },
    },
  },
  {
    name: 'small-models',
    about: 'Allows chosen models only.',
    body: {
      ...{ name: 'Chosen models only', kind: 'model-access', stages: request, mode: 'monitor' },
      config: { allow_models: ['gpt-5-mini', 'claude-haiku-*'] },
    },
  },
  {
    name: 'size',
    about: 'Refuses requests that are too large, or ask for very long answers.',
    body: {
      ...{ name: 'Reasonable sizes', kind: 'request-limits', stages: request },
      config: { max_input_tokens: 100_000, max_output_tokens: 16_000 },
    },
  },
  {
    name: 'only-teams',
    about: 'Refuses what a condition in CEL matches: here requests of tokens without a team.',
    body: {
      ...{ name: 'Only teams', kind: 'condition', stages: request, when: 'token.team_id == ""', mode: 'monitor' },
      config: { verdict: 'deny', reason_code: 'team.missing', message: 'Ask for a token of your team' },
    },
  },
]
