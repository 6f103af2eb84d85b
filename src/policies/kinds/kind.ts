/**
 * What a policy kind is: a config schema, which drives validation, the public description and the docs, and a way to
 * compile a checked config, once for each change, into what runs for a request. To add a kind, see policies/README.md.
 *
 * A compiled policy has one of two forms:
 *
 *   text    says where in a text it finds something. The chain does the rest in the same way for all such kinds: it
 *           blocks, redacts or escalates, in requests, whole answers and streams. A stream is followed by `TextMatcher.follow`.
 *   whole   looks at the request or the answer as a whole and gives a decision. On a stream it sees the answer when it
 *           is complete; what it may still stop is held back until then.
 *
 * A kind keeps nothing between requests, writes nothing and logs nothing. If it throws, its policy is broken, and
 * `when_broken` decides. Order, targets, `when`, mode and the combination of verdicts are the chain's business
 * (`../chain.ts`, policies/README.md).
 */
import { z } from 'zod'
import type { Verdict } from '../../events/event.ts'
import { Failure } from '../../failure.ts'
import type { WorkBudget } from '../../inspection/work-budget.ts'
import type { RequestFacts } from '../../languages/dialect.ts'
import type { PolicyStage } from '../../languages/families.ts'
import type { TextKind, TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { useFieldAdvice } from '../../lib/use-field-advice.ts'
import type { ModelView, PolicyContext } from '../conditions/context.ts'

/** A range of a text that a policy found; offsets in UTF-16 code units, `end` exclusive. */
export interface Match {
  start: number
  end: number
  /** The type, in upper case: `EMAIL`. The text `[EMAIL]` replaces the match if it is redacted. */
  label: string
  /** The entry of the config that found it, never the text itself: `terms[3]`. */
  entry: string
  /** The match has no known end and covers the rest of the text: the text must stop before it. */
  endless?: true
}

/** Finds ranges of text. Stateless: all requests share one. */
export interface TextMatcher {
  /** False if a whole text has no match. Called before a whole text is followed, so it must be cheap. */
  mayMatch(text: string): boolean
  /** All matches of a whole text, ordered by start, without overlaps. */
  matches(text: string): readonly Match[]
  /** No match is longer than what can be held, so a window of a text is enough to find it. */
  readonly bounded?: true
  /** Follows one text that arrives in pieces. For any split it finds what `matches` finds in the whole. */
  follow(work?: WorkBudget): TextFollower
}

/** One text as it comes in. */
export interface TextFollower {
  /**
   * Takes the next piece; `last` says that nothing follows. Returns each match once, in order, as soon as it is certain
   * and cannot grow, and in `safe` the offset before which no further match can begin. Offsets count from the beginning
   * of the whole text.
   */
  push(piece: string, last: boolean): { matches: readonly Match[]; safe: number }
}

type TextAction = 'block' | 'redact' | 'escalate' | 'rewrite'

export interface TextPolicy {
  readonly form: 'text'
  readonly matcher: TextMatcher
  readonly action: TextAction
  /** `policy.term_filter`: stable and dotted; stands in events and answers. */
  readonly reasonCode: string
  /** Whether text redacted in the request is restored in the answer of the same exchange. */
  readonly restore: boolean
  /** Returns the replacement of a match if the action is `rewrite`. */
  readonly replacement?: (found: string) => string
  /** The texts it reads; absent: all. `place` is the outermost member of a whole text, or a stream's channel. */
  readonly reads?: (text: { kind: TextKind; role: string | null; place: string }) => boolean
}

export interface WholePolicy {
  readonly form: 'whole'
  /** Returns a decision, or null to let the request or answer pass. Returns a promise only if it must wait. */
  consider(subject: Subject, tools: PolicyTools): Decision | null | Promise<Decision | null>
  /** The fixed decision of a policy that always allows: nothing has to wait for it. */
  readonly mark?: Decision & { verdict: 'allow' }
  /** Whether this model may serve as a fallback; absent: any model may. */
  allowsModel?(model: ModelView): boolean
  /** How answers to the requests that it applies to are kept and given again; then it decides nothing. */
  readonly cache?: CacheRule
  /** Whether lists of tools may show a tool of this name; absent: any tool. */
  allowsTool?(name: string): boolean
}

/** How answers are kept and given again (gateway/cache/README.md). */
export interface CacheRule {
  readonly seconds: number
  readonly scope: 'organization' | 'team' | 'token'
  /** What an answer that is given again costs, in percent of the provider's price. */
  readonly pricePercent: number
}

export type CompiledPolicy = TextPolicy | WholePolicy

/** What a policy inspects: the request before dispatch, or the answer. */
export interface Subject {
  readonly stage: PolicyStage
  /** What conditions read; its texts are joined at their first use. */
  readonly context: PolicyContext
  readonly facts: RequestFacts
  /** The parsed body: the request's at pre_request, otherwise the answer's (null for a stream without one). */
  readonly body: Readonly<Record<string, unknown>> | null
  /** The request's parsed body at every stage; null if it was not JSON. */
  readonly requestBody: Readonly<Record<string, unknown>> | null
  /** The texts of the request or the answer, including changes by earlier policies. */
  readonly texts: readonly TextSlot[]
}

/** The outside world as far as a policy may use it. */
export interface PolicyTools {
  readonly fetch: (url: string, init: BunFetchRequestInit) => Promise<Response>
  /** The addresses of a host name. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** Whether webhooks may call loopback, link-local and private addresses. */
  readonly privateWebhooks: boolean
  /** Aborts when the caller disconnects or a deadline passes. */
  readonly signal: AbortSignal
  /** Throws if nobody waits for the outcome any more. Call it after each yield to the event loop. */
  throwIfCut(): void
}

/** The verdicts that a policy can give; `allow` is only recorded. */
type PolicyVerdict = Exclude<Verdict, 'error'>

export interface Decision {
  verdict: PolicyVerdict
  reasonCode: string
  /** The message for the caller; never the text that was found. */
  message?: string
  /** The place of the finding, without the text itself: `messages[0].content`, `tools.get_weather`. */
  targets: readonly string[]
  /** The changes of redact and rewrite; applied only if the policy is enforced. */
  changes?: readonly Change[]
  /** Whole seconds, for the verdict rate_limit. */
  retryAfter?: number
}

/** Replaces a text, or sets a top-level member of the body; `undefined` removes the member. */
export type Change = { slot: TextSlot; text: string } | { member: string; value: unknown }

/** What a kind knows of its policy when it compiles. */
interface PolicyFrame {
  readonly stages: readonly PolicyStage[]
}

interface KindDefinition<Schema extends z.ZodObject> {
  readonly kind: string
  /** One sentence for the description and the docs. */
  readonly about: string
  /** The stages a policy of this kind may have. */
  readonly stages: readonly PolicyStage[]
  /** Whether a policy of this kind must have a `when`. */
  readonly needsWhen?: true
  readonly config: Schema
  /**
   * Throws `invalid_parameter` or `pattern_unbounded` naming the field from the body's root:
   * `config.patterns.0.pattern`.
   */
  compile(config: z.output<Schema>, frame: PolicyFrame): CompiledPolicy
}

export interface PolicyKind extends Omit<KindDefinition<z.ZodObject>, 'compile'> {
  /** Checks a stored or given config and compiles it. Throws a Failure naming the field. */
  compile(config: unknown, frame: PolicyFrame): CompiledPolicy
}

export const outputStages = ['post_request', 'pre_response'] as const satisfies readonly PolicyStage[]
export const everyStage = ['pre_request', ...outputStages] as const satisfies readonly PolicyStage[]

/** The actions of the common text kinds. */
export const textAction = z.enum(['block', 'redact', 'escalate']).describe('What is done with what was found')

/** Of every kind that may escalate: what a reviewer of such a request sees (gateway/accounting/prompt-capture.ts). */
export const capturing = {
  capture_escalated: z
    .boolean()
    .optional()
    .describe(
      'Whether a reviewer of a request that this policy escalates sees the first 2 KiB of its text, the answer where that waits, and the arguments of its tools, without personal data and secrets',
    ),
}

/** Whether a stored config asks for that. */
export const capturesEscalated = (config: unknown): boolean =>
  typeof config === 'object' && config !== null && 'capture_escalated' in config && config.capture_escalated === true

useFieldAdvice()

/** Hides a definition's config type, so that different kinds fit one table. */
export const policyKind = <Schema extends z.ZodObject>(definition: KindDefinition<Schema>): PolicyKind => ({
  ...definition,
  compile: (config, frame) => definition.compile(checkedConfig(definition.config, config), frame),
})

/** Throws `invalid_parameter` or `unknown_parameter` naming the first wrong field: `config.terms.0`. */
export function checkedConfig<Schema extends z.ZodType>(schema: Schema, config: unknown): z.output<Schema> {
  const parsed = schema.safeParse(config)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = ['config', ...(issue?.path ?? [])].map(String)
  if (issue?.code === 'unrecognized_keys') {
    throw new Failure('unknown_parameter', { param: [...path, issue.keys[0] ?? ''].join('.') })
  }
  throw new Failure('invalid_parameter', {
    message: issue?.message ?? 'The config is not valid',
    param: path.join('.'),
  })
}
