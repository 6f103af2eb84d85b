/** Why the text of a request is not there. An event does not say why, so this claims only what it proves. */
import type { Event } from '../../../api/routes.ts'
import { detail, policyResults, refusedLimit } from './event-details.ts'

export const whyNoText = (outcome: Event): string =>
  endedBeforePolicies(outcome)
    ? 'The request ended before policies read its text.'
    : 'Text is kept only where SERVICE_CAPTURE_PROMPT_BYTES is above 0, or where the policy that made the request wait has capture_escalated. Even then, none is kept of a request that a policy blocked without naming the words, or that ended before a webhook policy was asked.'

/**
 * Policies are chosen once the model, and with it a provider, is known. A call of an MCP server has neither, and limits
 * refuse after policies were chosen.
 */
const endedBeforePolicies = (outcome: Event): boolean =>
  outcome.verdict !== 'allow' &&
  outcome.details?.dispatched !== true &&
  policyResults(outcome).length === 0 &&
  refusedLimit(outcome) === null &&
  detail(outcome, 'provider') === null &&
  detail(outcome, 'method') === null
