/**
 * What a policy kind is: a config schema, which drives validation, the public description and the docs, and a way to
 * compile a checked config, once for each change, into what runs for a request. Adding a kind is a file here and a line
 * in `index.ts`.
 *
 * A compiled policy has one of two forms:
 *
 *   text    says where in a text it finds something. The chain does the rest, alike for all such kinds: block, redact or
 *           escalate, in requests, whole answers and streams. A stream is followed by `TextMatcher.follow`.
 *   whole   looks at the request or the answer as a whole and gives a decision. On a stream it sees the answer when it
 *           is complete; what it may still stop is held back until then.
 *
 * A kind keeps nothing between requests, writes nothing and logs nothing; what it throws is its policy being broken, and
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
import type { ModelView, PolicyContext } from '../conditions/context.ts'

/** A stretch of a text that a policy found; offsets in UTF-16 code units, `end` exclusive. */
export interface Match {
  start: number
  end: number
  /** What it is, in upper case: `EMAIL`. The text `[EMAIL]` takes its place where it is redacted. */
  label: string
  /** Which entry of the config found it, never the text itself: `terms[3]`. */
  entry: string
  /** It goes on to the end of the text, however long that is: the text must stop before it. */
  endless?: true
}

/** Finds stretches of text. Stateless: one is shared by all requests. */
export interface TextMatcher {
  /** False of a whole text in which there is no match; asked before a whole text is followed, so it must cost little. */
  mayMatch(text: string): boolean
  /** All matches of a whole text, by their start, none overlapping another. */
  matches(text: string): readonly Match[]
  /** No match is longer than what can be held, so that a window of a text shows whether it stands there. */
  readonly bounded?: true
  /** Follows one text that comes in pieces; what it finds in all is what `matches` finds in the whole, for any split. */
  follow(work?: WorkBudget): TextFollower
}

/** One text as it comes in. */
export interface TextFollower {
  /**
   * Takes the next piece; `last` says that nothing follows. Gives the matches that are now certain and cannot grow, each
   * once, in order, and the offset before which nothing can become part of a match any more. Offsets count from the
   * beginning of the whole text.
   */
  push(piece: string, last: boolean): { matches: readonly Match[]; safe: number }
}

type TextAction = 'block' | 'redact' | 'escalate' | 'rewrite'

export interface TextPolicy {
  readonly form: 'text'
  readonly matcher: TextMatcher
  readonly action: TextAction
  /** `policy.term_filter`: stable, dotted, what events and answers say. */
  readonly reasonCode: string
  /** Whether what was redacted in the request is put back in the answer of the same exchange. */
  readonly restore: boolean
  /** What takes a match's place where the action is `rewrite`. */
  readonly replacement?: (found: string) => string
  /** The texts it reads; absent: all. */
  readonly reads?: (slot: { kind: TextKind; role: string | null }) => boolean
}

export interface WholePolicy {
  readonly form: 'whole'
  /** What it says; null where it has nothing to say. Must not wait unless it needs to. */
  consider(subject: Subject, tools: PolicyTools): Decision | null | Promise<Decision | null>
  /** What it says whatever it is shown, where that lets everything pass: nothing has to wait for it. */
  readonly mark?: Decision & { verdict: 'allow' }
  /** Whether a fallback may be served by this model; absent: by any. */
  allowsModel?(model: ModelView): boolean
  /** Whether a tool of this name may be shown to those who look for tools; absent: any. */
  allowsTool?(name: string): boolean
}

export type CompiledPolicy = TextPolicy | WholePolicy

/** What is looked at: the request before dispatch, or the answer. */
export interface Subject {
  readonly stage: PolicyStage
  /** What conditions read; its texts are joined when they are first asked for. */
  readonly context: PolicyContext
  readonly facts: RequestFacts
  /** The parsed body: the request's at pre_request, otherwise the answer's (null where a stream has no such thing). */
  readonly body: Readonly<Record<string, unknown>> | null
  /** The request's parsed body at every stage; null where it was no JSON. */
  readonly requestBody: Readonly<Record<string, unknown>> | null
  /** The texts of the request or the answer, with what earlier policies changed. */
  readonly texts: readonly TextSlot[]
}

/** What a policy may use of the world. */
export interface PolicyTools {
  readonly fetch: (url: string, init: BunFetchRequestInit) => Promise<Response>
  /** The addresses of a host name. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** Whether webhooks may call loopback, link-local and private addresses. */
  readonly privateWebhooks: boolean
  /** Fires when the caller leaves or a deadline passes. */
  readonly signal: AbortSignal
  /** Throws once nobody waits for the outcome any more: asked after each turn that a kind gives the others. */
  throwIfCut(): void
}

/** Verdicts a policy can come to; `allow` only to be recorded. */
type PolicyVerdict = Exclude<Verdict, 'error'>

export interface Decision {
  verdict: PolicyVerdict
  reasonCode: string
  /** What the caller is told; never the text that was found. */
  message?: string
  /** Where, in words without the text itself: `messages[0].content`, `tools.get_weather`. */
  targets: readonly string[]
  /** What redact and rewrite do; applied only where the policy is enforced. */
  changes?: readonly Change[]
  /** Whole seconds, where the verdict is rate_limit. */
  retryAfter?: number
}

/** One text put in the place of another, or an outermost member of the body set, or left out (`undefined`). */
export type Change = { slot: TextSlot; text: string } | { member: string; value: unknown }

/** What a kind may know of its policy when it compiles. */
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
  /** Throws `invalid_parameter` or `pattern_unbounded` naming the field from the body's root: `config.patterns.0.pattern`. */
  compile(config: z.output<Schema>, frame: PolicyFrame): CompiledPolicy
}

export interface PolicyKind extends Omit<KindDefinition<z.ZodObject>, 'compile'> {
  /** Checks a stored or given config and compiles it. Throws a Failure naming the field. */
  compile(config: unknown, frame: PolicyFrame): CompiledPolicy
}

export const outputStages = ['post_request', 'pre_response'] as const satisfies readonly PolicyStage[]
export const everyStage = ['pre_request', ...outputStages] as const satisfies readonly PolicyStage[]

/** What the common text kinds do with what they find. */
export const textAction = z.enum(['block', 'redact', 'escalate']).describe('What is done with what was found')

/** Forgets a definition's config type, so that different kinds fit one table. */
export const policyKind = <Schema extends z.ZodObject>(definition: KindDefinition<Schema>): PolicyKind => ({
  ...definition,
  compile: (config, frame) => definition.compile(checkedConfig(definition.config, config), frame),
})

/** Throws `invalid_parameter` or `unknown_parameter` naming the first wrong field: `config.terms.0`. */
function checkedConfig<Schema extends z.ZodType>(schema: Schema, config: unknown): z.output<Schema> {
  const parsed = schema.safeParse(config)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = ['config', ...(issue?.path ?? [])].map(String)
  if (issue?.code === 'unrecognized_keys') {
    throw new Failure('unknown_parameter', { param: [...path, issue.keys[0] ?? ''].join('.') })
  }
  const missing = issue?.code === 'invalid_type' && issue.message.endsWith('received undefined')
  const message = missing ? 'This is required' : (issue?.message ?? 'The config is not valid')
  throw new Failure('invalid_parameter', { message, param: path.join('.') })
}
