/** What a trial of policies and a replay of recorded requests answer. */
import { z } from 'zod'
import { verdicts } from '../../events/event.ts'
import { familyNames, policyStages } from '../../languages/families.ts'
import { policyModes } from '../stored-policy.ts'

const object = z.record(z.string(), z.unknown())

export const findingSchema = z.object({
  policy_id: z.string().nullable().describe('Null for a policy that was given in the request'),
  name: z.string(),
  kind: z.string(),
  stage: z.enum(policyStages),
  mode: z.enum(policyModes),
  verdict: z.enum(verdicts),
  reason_code: z.string(),
  message: z.string().nullable(),
  latency_ms: z.number(),
  targets: z.array(z.string()),
})

export const testReply = z.object({
  verdict: z.enum(verdicts),
  reason_code: z.string(),
  family: z.enum(familyNames).describe('The language in which the bodies were read'),
  findings: z.array(findingSchema).describe('One for each stage of each policy whose condition held'),
  request: object.describe('The request as policies would have changed it'),
  response: object.nullable(),
})

export const replayReply = z.object({
  examined: z.number().int().describe('How many recorded requests were looked at, the newest first'),
  matched: z.number().int().describe('Those that the policy is for and whose condition held'),
  verdicts: z.record(z.string(), z.number().int()).describe('How often it would have come to each verdict'),
  undecided: z.number().int().describe('Those about which only what was not recorded could decide'),
  unreplayed: z
    .record(z.string(), z.number().int())
    .describe(
      'How many, for each reason: text_not_recorded, details_not_recorded, answer_not_recorded, no_model, broken',
    ),
  complete: z.boolean().describe('False where there are older ones in the window that were not looked at'),
  results: z
    .array(
      z.object({
        event_id: z.uuid(),
        timestamp: z.iso.datetime(),
        request_id: z.string().nullable(),
        recorded_verdict: z.enum(verdicts),
        verdict: z.enum(verdicts),
        reason_code: z.string(),
        excerpts: z
          .array(z.object({ before: z.string(), found: z.string(), after: z.string(), label: z.string() }))
          .describe('Where it finds something in the text, where that is recorded (capture_prompt_bytes); at most 5'),
        condition: z
          .array(z.object({ part: z.string(), values: z.array(z.object({ name: z.string(), value: z.string() })) }))
          .describe('The parts of its condition that held, with the values that they asked for, each as JSON'),
      }),
    )
    .describe('What it would not have let pass as it was, at most 100'),
})
