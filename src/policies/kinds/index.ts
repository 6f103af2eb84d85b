/** The policy kinds that this version knows: one line each. */
import { answerCache } from './answer-cache.ts'
import { audit } from './audit.ts'
import { condition } from './condition.ts'
import { escalate } from './escalate.ts'
import { jsonSchema } from './json-schema.ts'
import type { PolicyKind } from './kind.ts'
import { modelAccess } from './model-access.ts'
import { patternFilter } from './pattern-filter.ts'
import { pii } from './pii.ts'
import { promptInjection } from './prompt-injection.ts'
import { requestLimits } from './request-limits.ts'
import { requestRewrite } from './request-rewrite.ts'
import { responseRewrite } from './response-rewrite.ts'
import { secrets } from './secrets.ts'
import { termFilter } from './term-filter.ts'
import { toolAccess } from './tool-access.ts'
import { webhook } from './webhook.ts'

const kinds: readonly PolicyKind[] = [
  termFilter,
  patternFilter,
  pii,
  secrets,
  promptInjection,
  modelAccess,
  toolAccess,
  requestLimits,
  requestRewrite,
  responseRewrite,
  jsonSchema,
  condition,
  escalate,
  webhook,
  answerCache,
  audit,
]

export const policyKinds: ReadonlyMap<string, PolicyKind> = new Map(kinds.map((kind) => [kind.kind, kind]))
